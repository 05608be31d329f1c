import { describe, expect, it } from 'vitest';
import { apiError, lostAnswer, madeUpPlace, madeUpSend } from '../load/history.fixture.ts';
import { conflict, mustConflict, type Story, story } from './history.ts';

const own = (...ids: string[]): Story => story(madeUpSend(1, ...ids));
const throwing = (error: Error) =>
  madeUpPlace(() => {
    throw error;
  });

describe('another body under a used key', () => {
  it('that is refused with the id of the message counts', async () => {
    const one = own('m1');
    const place = throwing(apiError('idempotency_conflict', { original_message_id: 'm1' }));
    expect(await conflict(place, one)).toBe(true);
    await mustConflict(place, one);
    expect(one).toMatchObject({ conflicts: 2, faults: [] });
  });

  it.each([
    ['the id of another message', apiError('idempotency_conflict', { original_message_id: 'm2' }), /the id m2/],
    ['no id', apiError('idempotency_conflict'), /the id undefined/],
    ['another refusal', apiError('invalid_request'), /invalid_request/],
  ])('that is refused with %s is a fault, and does not count', async (_what, error, text) => {
    const one = own('m1');
    await conflict(throwing(error), one);
    expect(one).toMatchObject({ conflicts: 0, faults: [{ invariant: 'I5', text: expect.stringMatching(text) }] });
  });

  it('that is accepted is a fault', async () => {
    const one = own('m1');
    await conflict(madeUpPlace(), one);
    expect(one).toMatchObject({ conflicts: 0, faults: [{ text: expect.stringContaining('was accepted') }] });
  });

  it.each([
    ['no answer', lostAnswer()],
    ['an answer that says again', apiError('unavailable')],
  ])('with %s shows nothing; once nothing is killed any more it is a fault', async (_what, error) => {
    const one = own('m1');
    expect(await conflict(throwing(error), one)).toBe(false);
    expect(one).toMatchObject({ conflicts: 0, faults: [] });
    await mustConflict(throwing(error), one);
    expect(one).toMatchObject({ conflicts: 0, faults: [{ text: expect.stringContaining('never answered') }] });
  });
});
