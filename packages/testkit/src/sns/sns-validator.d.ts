/** The part of it that the test uses; the package has no types of its own. */
declare module 'sns-validator' {
  export default class MessageValidator {
    validate(message: Record<string, unknown>, done: (error: Error | null) => void): void;
  }
}
