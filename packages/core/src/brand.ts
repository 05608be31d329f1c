/** What the service is called where others read it, each spelling once. */

/** Version of the service. */
export const VERSION = '0.1.0';

/** The name of the Worker, and of what is set up for it at providers. */
export const SERVICE_NAME = 'pylota-mail';

/** How the service calls itself to servers of others. */
export const USER_AGENT = `PylotaMail/${VERSION}`;
