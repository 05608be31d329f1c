import { LIMITS } from '@pmail/core/limits.ts';
import { boundedBytes } from '@pmail/transports/bounded-body.ts';
import { decode, encode, type Packet, RECURSION_DESIRED } from 'dns-packet';

/** Addresses of a host over DNS-over-HTTPS (RFC 8484). */

/** No resolver could tell, which is not the same as a name without addresses. */
export class ResolverFault extends Error {
  override name = 'ResolverFault';
  /** Whether a resolver did answer, and said that the servers of the name do not (SERVFAIL and the like). */
  readonly of_the_name: boolean;

  constructor(message: string, options: { cause?: unknown; of_the_name?: boolean } = {}) {
    super(message, { cause: options.cause });
    this.of_the_name = options.of_the_name ?? false;
  }
}

/**
 * Every IPv4 and IPv6 address of a host; none when the name does not exist or has none. Aliases are followed by the
 * resolver. The next resolver is asked when one fails or cannot tell.
 */
export async function resolveHost(resolvers: readonly string[], host: string): Promise<string[]> {
  let fault: unknown;
  let ofTheName = false;
  for (const resolver of resolvers) {
    try {
      const signal = AbortSignal.timeout(LIMITS.resolver_deadline_ms);
      const answers = await Promise.all([ask(resolver, host, 'A', signal), ask(resolver, host, 'AAAA', signal)]);
      return answers.flat();
    } catch (error) {
      fault = error;
      ofTheName ||= error instanceof ResolverFault && error.of_the_name;
    }
  }
  throw new ResolverFault('no resolver could tell', { cause: fault, of_the_name: ofTheName });
}

const NXDOMAIN = 'NXDOMAIN';
const MEDIA_TYPE = 'application/dns-message';
/** More than this is no answer about one name. */
const ANSWER_BYTES_MAX = 65_535;

async function ask(resolver: string, host: string, type: 'A' | 'AAAA', signal: AbortSignal): Promise<string[]> {
  const query = encode({ type: 'query', id: 0, flags: RECURSION_DESIRED, questions: [{ type, name: host }] });
  const response = await fetch(resolver, {
    method: 'POST',
    headers: { 'content-type': MEDIA_TYPE, accept: MEDIA_TYPE },
    body: new Uint8Array(query),
    redirect: 'manual',
    signal,
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new ResolverFault(`the resolver answered ${response.status}`);
  }
  const bytes = await boundedBytes(response.body as ReadableStream<Uint8Array> | null, ANSWER_BYTES_MAX);
  return addressesIn(decode(Buffer.from(bytes)), type, host);
}

/** What is not the whole answer to this question tells nothing about the host. */
function addressesIn(packet: Packet, type: 'A' | 'AAAA', host: string): string[] {
  const [question] = packet.questions ?? [];
  const asked = question?.type === type && question.name.toLowerCase() === host.toLowerCase();
  if (packet.type !== 'response' || packet.flag_tc === true || !asked) {
    throw new ResolverFault('the answer is none to the question, or was cut');
  }
  if (packet.rcode === NXDOMAIN) return [];
  if (packet.rcode !== 'NOERROR') {
    throw new ResolverFault(`the resolver answered ${packet.rcode ?? 'nothing'}`, {
      of_the_name: packet.rcode !== 'REFUSED',
    });
  }
  return (packet.answers ?? []).flatMap((answer) => (answer.type === type ? [answer.data] : []));
}
