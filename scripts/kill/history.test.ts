import { describe, expect, it } from 'vitest';
import { apiError, lostAnswer, madeUpPlace, madeUpSend, refusedConnection } from '../load/history.fixture.ts';
import { conflict, live, mustConflict, type Story, story } from './history.ts';

const own = (...ids: string[]): Story => story(madeUpSend(1, ...ids));
const throwing = (error: Error) =>
  madeUpPlace(() => {
    throw error;
  });

describe('another body under a used key', () => {
  it('that is refused with the id of the message counts', async () => {
    const one = own('m1');
    const place = throwing(apiError('idempotency_conflict', { original_message_id: 'm1' }));
    expect(await conflict(place, one, 'before')).toBe(true);
    await mustConflict(place, one);
    expect(one).toMatchObject({ conflicts: { before: 1, after: 1 }, faults: [] });
  });

  it.each([
    ['the id of another message', apiError('idempotency_conflict', { original_message_id: 'm2' }), /the id m2/],
    ['no id', apiError('idempotency_conflict'), /the id undefined/],
    ['another refusal', apiError('invalid_request'), /invalid_request/],
  ])('that is refused with %s is a fault, and does not count', async (_what, error, text) => {
    const one = own('m1');
    await conflict(throwing(error), one, 'before');
    expect(one).toMatchObject({
      conflicts: { before: 0, after: 0 },
      faults: [{ invariant: 'I5', text: expect.stringMatching(text) }],
    });
  });

  it('that is accepted is a fault', async () => {
    const one = own('m1');
    await conflict(madeUpPlace(), one, 'before');
    expect(one).toMatchObject({
      conflicts: { before: 0, after: 0 },
      faults: [{ text: expect.stringContaining('was accepted') }],
    });
  });

  it.each([
    ['no answer', lostAnswer()],
    ['an answer that says again', apiError('unavailable')],
  ])('with %s shows nothing; once nothing is killed any more it is a fault', async (_what, error) => {
    const one = own('m1');
    expect(await conflict(throwing(error), one, 'before')).toBe(false);
    expect(one).toMatchObject({ conflicts: { before: 0, after: 0 }, faults: [] });
    await mustConflict(throwing(error), one);
    expect(one).toMatchObject({
      conflicts: { before: 0, after: 0 },
      faults: [{ text: expect.stringContaining('never answered') }],
    });
  });
});

describe('what a client knows of its key at a kill', () => {
  /** A client whose request ends so, begun while the runtime lived or after. */
  async function knows(error: Error, lives = true, twice = false): Promise<Story> {
    const one = own();
    await live(
      throwing(error),
      one,
      () => (twice ? 0.19 : 0.99),
      () => lives,
    );
    return one;
  }

  it('is nothing when the answer to a request that went out was lost', async () => {
    expect(await knows(lostAnswer())).toMatchObject({ known: 'indeterminate', twice: false });
    expect(await knows(apiError('unavailable'))).toMatchObject({ known: 'indeterminate' });
  });

  it('is that nobody took it, when nobody was there to listen', async () => {
    expect(await knows(refusedConnection())).toMatchObject({ known: 'not_sent', send: { unsent: 1, unanswered: 0 } });
  });

  it('is that nobody took it, when it began after the kill on a connection that was left over', async () => {
    expect(await knows(lostAnswer(), false)).toMatchObject({ known: 'not_sent' });
  });

  it('twice at once are two requests that went out', async () => {
    expect(await knows(lostAnswer(), true, true)).toMatchObject({ twice: true, send: { unanswered: 2 } });
    expect(await knows(refusedConnection(), true, true)).toMatchObject({ twice: false, send: { unsent: 2 } });
    expect(await knows(lostAnswer(), false, true)).toMatchObject({ twice: false });
  });
});
