import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Mailbox } from '../address/address.ts';
import { address, platformAddress, recipient, replyContext, sendContext, target } from './context.fixture.ts';
import { planRecipients } from './recipients.ts';
import type { PlannedRecipient, SendContext } from './types.ts';

function planned(context: SendContext): PlannedRecipient[] {
  const result = planRecipients(context);
  if (!result.ok) throw new Error(`refused: ${JSON.stringify(result)}`);
  return result.value;
}

function box(to: string, name = ''): Mailbox {
  return { address: to, name };
}

describe.each(['send', 'forward'] as const)('recipients of a %s', (operation) => {
  const plan = (body: SendContext['body']) => planRecipients(sendContext({ operation, body, target: target() }));

  it('are those of the body, to before cc before bcc, in the order given', () => {
    const result = plan({
      bcc: ['b@example.net'],
      cc: ['c@example.net'],
      to: ['z@example.net', { address: 'A@Example.NET', name: ' Ann ' }],
    });
    expect(result).toEqual({
      ok: true,
      value: [
        recipient('z@example.net'),
        recipient('a@example.net', 'to', 'Ann'),
        recipient('c@example.net', 'cc'),
        recipient('b@example.net', 'bcc'),
      ],
    });
  });

  it('are each written to once: the first place wins, in any case of letters', () => {
    const result = plan({
      to: ['jo@example.net', 'JO@EXAMPLE.NET'],
      cc: ['Jo@Example.net', 'kim@example.org'],
      bcc: ['KIM@example.org', '"jo"@example.net'],
    });
    expect(result).toMatchObject({ value: [recipient('jo@example.net'), recipient('kim@example.org', 'cc')] });
    expect(planned(sendContext({ operation, body: { to: ['jo@example.net', 'JO@EXAMPLE.NET'] } }))).toHaveLength(1);
  });

  it('name every bad address by its path, and are invalid rather than unsupported when both occur', () => {
    expect(plan({ to: ['jo@'], cc: [{ address: 'jö@example.net' }], bcc: ['x y@example.net'] })).toMatchObject({
      code: 'address_invalid',
      details: { errors: [{ path: 'to[0]' }, { path: 'bcc[0]' }, { path: 'cc[0].address' }] },
    });
  });

  it('refuse a name with a control character or half a character', () => {
    for (const name of ['Jo\r\nBcc: x@example.org', 'Jo\u0000', 'Jo\u2028', '\ud83d']) {
      expect(plan({ to: [{ address: 'jo@example.net', name }] })).toMatchObject({
        code: 'invalid_request',
        details: { errors: [{ path: 'to[0].name' }] },
      });
    }
  });

  it('may stand in cc or bcc alone', () => {
    expect(plan({ to: undefined, bcc: ['jo@example.net'] })).toMatchObject({
      value: [recipient('jo@example.net', 'bcc')],
    });
  });
});

describe('recipients of a reply', () => {
  it('to an inbound message: its sender alone, and nobody of the body', () => {
    const context = replyContext({
      target: target({ to: [box('desk@acme.example.com'), box('kim@example.org')], cc: [box('lee@example.org')] }),
      body: { to: ['mallory@example.com'], cc: ['mallory@example.com'], bcc: ['mallory@example.com'] },
    });
    expect(planned(context)).toEqual([recipient('jo@example.net', 'to', 'Jo')]);
  });

  it('to an inbound message: its Reply-To where that is safe', () => {
    const reply_to = [box('team@example.net'), box('second@example.net')];
    expect(planned(replyContext({ target: target({ reply_to }) }))).toEqual([recipient('team@example.net')]);
  });

  it('to a message of our own: its to and cc again, never its bcc', () => {
    const own = target({
      direction: 'outbound',
      kind: 'transactional',
      status: 'delivered',
      from: box('desk@acme.example.com'),
      reply_to: [box('desk+t03k.9f2mq7xa@acme.example.com')],
      to: [box('jo@example.net', 'Jo')],
      cc: [box('kim@example.org')],
    });
    expect(planned(replyContext({ target: own }))).toEqual([
      recipient('jo@example.net', 'to', 'Jo'),
      recipient('kim@example.org', 'cc'),
    ]);
  });
});

describe('recipients of a reply to all', () => {
  const plan = (
    facts: Parameters<typeof target>[0],
    directory?: { addresses: SendContext['directory']['addresses'] },
  ) => planRecipients(replyContext({ operation: 'reply_all', target: target(facts), ...(directory && { directory }) }));

  it('are the reply target, then to, and cc as cc', () => {
    const result = plan({
      to: [box('desk@acme.example.com'), box('kim@example.org', 'Kim')],
      cc: [box('lee@example.org')],
    });
    expect(result).toMatchObject({
      value: [
        recipient('jo@example.net', 'to', 'Jo'),
        recipient('kim@example.org', 'to', 'Kim'),
        recipient('lee@example.org', 'cc'),
      ],
    });
  });

  it('never are addresses of the identity, whatever their state', () => {
    const addresses = [
      address(),
      platformAddress(),
      ...(['pending', 'active', 'retiring', 'retired'] as const).map((status) =>
        address({ address: `${status}@acme.example.com`, role: 'alias', status }),
      ),
    ];
    const result = plan(
      {
        to: addresses.map((entry) => box(entry.address)),
        cc: [box('retired@acme.example.com'), box('kim@example.org')],
      },
      { addresses },
    );
    expect(result).toMatchObject({
      value: [recipient('jo@example.net', 'to', 'Jo'), recipient('kim@example.org', 'cc')],
    });
  });

  it('never are addresses of the identity behind a tag, such as the thread token people answer to', () => {
    const result = plan({
      to: [box('desk+t03k.9f2mq7xa@acme.example.com'), box('kim@example.org')],
      cc: [box('desk.acme+t03k.9f2mq7xa@agents.example')],
    });
    expect(result).toMatchObject({
      value: [recipient('jo@example.net', 'to', 'Jo'), recipient('kim@example.org')],
    });
  });

  it('keep tagged addresses of others apart', () => {
    const result = plan({ to: [box('kim+a@example.org'), box('kim+b@example.org')] });
    expect(result).toMatchObject({
      value: [recipient('jo@example.net', 'to', 'Jo'), recipient('kim+a@example.org'), recipient('kim+b@example.org')],
    });
  });

  it('are each written to once', () => {
    const result = plan({ to: [box('jo@example.net'), box('kim@example.org')], cc: [box('kim@example.org')] });
    expect(result).toMatchObject({ value: [recipient('jo@example.net', 'to', 'Jo'), recipient('kim@example.org')] });
  });

  it('show nothing of a blind copy: a message that reached us by bcc goes back to its sender', () => {
    // The envelope recipient is ours and in neither field; nothing of the message's own bcc is known to the rule.
    const result = plan({ to: [box('kim@example.org')], cc: [] });
    expect(result).toMatchObject({
      value: [recipient('jo@example.net', 'to', 'Jo'), recipient('kim@example.org')],
    });
    expect(planned(replyContext({ operation: 'reply_all' })).some(({ field }) => field === 'bcc')).toBe(false);
  });

  it('are refused when only we are left', () => {
    const result = plan({ from: box('desk@acme.example.com'), to: [box('desk.acme@agents.example')] });
    expect(result).toMatchObject({ code: 'invalid_request', details: { errors: [{ path: 'to' }] } });
  });

  it('of a message of our own are its to and cc, without us', () => {
    const own = {
      direction: 'outbound',
      kind: 'transactional',
      status: 'delivered',
      from: box('desk@acme.example.com'),
      reply_to: [box('desk+t03k.9f2mq7xa@acme.example.com')],
      to: [box('jo@example.net')],
      cc: [box('desk@acme.example.com'), box('kim@example.org')],
    } as const;
    expect(plan({ ...own, reply_to: [...own.reply_to], to: [...own.to], cc: [...own.cc] })).toMatchObject({
      value: [recipient('jo@example.net'), recipient('kim@example.org', 'cc')],
    });
  });
});

describe('recipients in general', () => {
  const input: fc.Arbitrary<string> = fc
    .tuple(fc.constantFrom('jo', 'JO', 'kim', 'desk'), fc.constantFrom('example.net', 'Example.NET', 'example.org'))
    .map(([local, host]) => `${local}@${host}`);

  it('are never listed twice and never changed in field or order', () => {
    fc.assert(
      fc.property(fc.array(input, { minLength: 1 }), fc.array(input), fc.array(input), (to, cc, bcc) => {
        const all = [...to, ...cc, ...bcc].map((entry) => entry.toLowerCase());
        expect(planned(sendContext({ body: { to, cc, bcc } })).map((entry) => entry.address)).toEqual([
          ...new Set(all),
        ]);
      }),
    );
  });

  it('are not found without the message that is answered', () => {
    expect(planRecipients(replyContext({ target: null }))).toMatchObject({ code: 'message_not_found' });
  });
});
