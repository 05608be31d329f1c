import { unstuffed } from '@pmail/testkit/smtp/script.ts';
import type { ScriptedRelay } from '@pmail/testkit/smtp/scripted-relay.ts';
import { type MakeBench, type Situation, type TakenMail, transportContract } from '../contract.ts';
import {
  ALL,
  BODY,
  DATA,
  EHLO,
  GREETING,
  JO,
  KIM,
  LEE,
  LOGGED_IN,
  letter,
  MAIL,
  QUIT,
  RCPT,
  RSET,
  rig,
  STARTTLS,
  script,
  UP_TO_TLS,
} from './relay.fixture.ts';
import { type RelayPorts, smtpTransport } from './transport.ts';

/** The contract of transports, with a relay in virtual time. */

function takenBy({ sessions }: ScriptedRelay): TakenMail[] {
  return sessions
    .flatMap(({ player }) => player.taken)
    .map(({ recipients, body }) => ({ recipients, mime: new Uint8Array(unstuffed(body)) }));
}

type Scripts = Parameters<typeof rig>[0];

function benches(situations: Partial<Record<Situation, Scripts>>, changes: Partial<RelayPorts> = {}): MakeBench {
  return (situation) => {
    const scripts = situations[situation];
    if (scripts === undefined) return null;
    const { ports, relay } = rig(scripts, changes);
    const message = letter({ to: [JO], cc: [KIM], bcc: [LEE] });
    return { transport: smtpTransport(ports), message, taken: () => takenBy(relay) };
  };
}

const FOR_ALL = [...LOGGED_IN, MAIL, RCPT, RCPT, RCPT, DATA];
const refuses = (line: string) => ({ expect: '^RCPT TO:', send: [line] });
const NO = refuses('550 5.1.1 No');
const LATER = refuses('451 4.7.1 Later');

transportContract(
  'smtp',
  benches({
    accepts: [script(...FOR_ALL, BODY, QUIT)],
    refuses: [script(...FOR_ALL, { expect: 'BODY', send: ['554 5.7.1 Spam'] }, QUIT)],
    puts_off: [script(...FOR_ALL, { expect: 'BODY', send: ['451 4.3.0 Later'] }, QUIT)],
    takes_some: [script(...LOGGED_IN, MAIL, NO, RCPT, LATER, DATA, BODY, QUIT)],
    loses_answer: [script(...FOR_ALL, { expect: 'BODY', takes: true, reset: true })],
    unclear: [script(...FOR_ALL, { expect: 'BODY', takes: true, send: ['399 Perhaps'] })],
    silent: [script(...FOR_ALL, { expect: 'BODY', takes: true, silent_s: 3_600 })],
  }),
);

transportContract(
  'smtp with STARTTLS',
  benches({ accepts: [script(...UP_TO_TLS, STARTTLS, EHLO, ...ALL.slice(2, 4), RCPT, RCPT, RCPT, DATA, BODY, QUIT)] }),
);

transportContract(
  'smtp that refuses every recipient',
  benches({
    refuses: [script(...LOGGED_IN, MAIL, NO, NO, NO, RSET, QUIT)],
    puts_off: [script(...LOGGED_IN, MAIL, LATER, NO, LATER, RSET, QUIT)],
  }),
);

transportContract(
  'smtp that cannot be used',
  benches({ puts_off: ['refuses'], refuses: [script(GREETING, { expect: '^EHLO', send: ['250 x'] }, QUIT)] }),
);

transportContract(
  'smtp that takes it and goes away',
  benches({ loses_answer: [script(...FOR_ALL, { expect: 'BODY', takes: true, send: ['421 Bye'], close: true })] }),
);

for (const part of ['relayOf', 'resolve', 'open', 'requestDomainCheck'] as const) {
  const fails = { [part]: () => Promise.reject(new Error(`${part} failed`)) };
  transportContract(`smtp whose ${part} fails`, benches({ fails_here: [script(...FOR_ALL, BODY, QUIT)] }, fails));
}
