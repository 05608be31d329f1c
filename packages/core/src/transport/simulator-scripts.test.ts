import { describe, expect, it } from 'vitest';
import { judgeBounce } from '../delivery/bounce-class.ts';
import { isSimulatorAddress, simulatorScript, testProviderId } from './simulator-scripts.ts';

const DELIVERED = { after_ms: 1_000, kind: 'delivered', hard: false };
const DEFERRED = { after_ms: 1_000, kind: 'deferred', hard: false, smtp_code: '451', enhanced_code: '4.2.0' };

function script(local: string) {
  return simulatorScript(`${local}@simulator.invalid`);
}

describe('simulator scripts', () => {
  it('delivered: accepted, delivered after a second', () => {
    expect(script('delivered')).toMatchObject({ answer: 'accepted', events: [DELIVERED] });
  });

  it('bounce: accepted, a hard bounce after a second that suppresses', () => {
    const bounce = script('bounce');
    expect(bounce).toMatchObject({
      answer: 'accepted',
      events: [{ after_ms: 1_000, kind: 'bounced', hard: true, smtp_code: '550', enhanced_code: '5.1.1' }],
    });
    expect(judgeBounce('hard', '5.1.1', '550').suppress).toBe('hard_bounce');
  });

  it('softbounce: deferred after one second, a soft bounce after three', () => {
    const soft = script('softbounce');
    expect(soft).toMatchObject({
      answer: 'accepted',
      events: [DEFERRED, { after_ms: 3_000, kind: 'bounced', hard: false }],
    });
    const last = soft.answer === 'accepted' ? soft.events[1] : undefined;
    expect(judgeBounce('soft', last?.enhanced_code ?? null, last?.smtp_code ?? null)).toMatchObject({
      hard: false,
      suppress: null,
    });
  });

  it('complaint: delivered after one second, complained about after three', () => {
    expect(script('complaint')).toMatchObject({
      answer: 'accepted',
      events: [DELIVERED, { after_ms: 3_000, kind: 'complained', smtp_code: null, smtp_response: null }],
    });
  });

  it('deferred: deferred after a second, and nothing more', () => {
    expect(script('deferred')).toMatchObject({ answer: 'accepted', events: [DEFERRED] });
  });

  it('reject and timeout: no acceptance and no report, ever', () => {
    expect(script('reject')).toEqual({ answer: 'rejected' });
    expect(script('timeout')).toEqual({ answer: 'unknown' });
  });

  it.each(['jo', 'bounced', 'constructor', '__proto__', 'tostring', '"quoted name"', 'delivered.x'])(
    'any other name is delivered: %s',
    (local) => {
      expect(script(local)).toEqual(script('delivered'));
    },
  );

  it('a tag does not change the script, nor do capitals', () => {
    for (const local of ['bounce+case-7', 'BOUNCE', 'Bounce+A+b']) expect(script(local)).toEqual(script('bounce'));
    expect(script('timeout+x')).toEqual({ answer: 'unknown' });
  });

  it('answers like a server: the reply names both codes', () => {
    for (const local of ['delivered', 'bounce', 'softbounce', 'deferred']) {
      const found = script(local);
      for (const event of found.answer === 'accepted' ? found.events : []) {
        expect(event.smtp_response).toMatch(new RegExp(`^${event.smtp_code} ${event.enhanced_code} `));
      }
    }
  });

  it('events of one script rise in time', () => {
    for (const local of ['delivered', 'bounce', 'softbounce', 'complaint', 'deferred']) {
      const found = script(local);
      const times = found.answer === 'accepted' ? found.events.map(({ after_ms }) => after_ms) : [];
      expect(times).toEqual(times.toSorted((a, b) => a - b));
    }
  });
});

describe('names of the test providers', () => {
  it('only simulator.invalid is the simulator', () => {
    expect(isSimulatorAddress('a@simulator.invalid')).toBe(true);
    for (const other of ['a@sub.simulator.invalid', 'a@simulator.invalid.example', 'simulator.invalid@example.net']) {
      expect(isSimulatorAddress(other)).toBe(false);
    }
  });

  it('one id for a message, from its ulid in lower case', () => {
    expect(testProviderId('msg_01JD9Q3V7M8X2C4N6B5K1R0E9T')).toBe('test-01jd9q3v7m8x2c4n6b5k1r0e9t');
  });
});
