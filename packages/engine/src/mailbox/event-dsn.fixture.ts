import { type DsnReport, readDsn } from '@pmail/core/delivery/dsn.ts';
import { utf8 } from '@pmail/core/hash.ts';
import { parseMail } from '@pmail/mime/parse.ts';

/** Reports as they arrive: shapes that servers have been seen to write, with example names in them. */

type Header = { name: string; value: string };

const RETURNED = ['message/rfc822', 'text/rfc822-headers'];

/** Takes a report apart as its reader wants it. */
export async function reportFrom(lines: string): Promise<DsnReport> {
  const mail = await parseMail(utf8(lines.replaceAll('\n', '\r\n')));
  const status: string[] = [];
  const returned: Header[] = [];
  for (const { content_type: type, content } of mail.attachments) {
    if (type === 'message/delivery-status') status.push(new TextDecoder().decode(content));
    if (RETURNED.includes(type)) returned.push(...(await parseMail(content)).headers);
  }
  return readDsn({ delivery_status: status, returned, headers: mail.headers, text: mail.text });
}

interface ReportOptions {
  /** Text of the message/delivery-status part; without one there is none. */
  status?: string;
  /** Message-ID of what came back. */
  id?: string;
  text?: string;
  headers?: string;
  type?: string;
  end?: string;
}

/** A report in parts: what is written for people, for machines, and what came back. */
export function inParts({
  status,
  id,
  text = 'Not delivered.',
  headers = '',
  type,
  end = '--=_b1--',
}: ReportOptions): string {
  return `Return-Path: <>
From: Mail Delivery System <MAILER-DAEMON@mx.example.net>
To: desk@acme.example.com
Subject: Undelivered Mail Returned to Sender
Date: Mon, 30 Nov 2026 08:41:07 +0000
Message-ID: <bounce.5f21@mx.example.net>
${headers}MIME-Version: 1.0
Content-Type: ${type ?? 'multipart/report; report-type=delivery-status'};
\tboundary="=_b1"

This is a MIME-encapsulated message.

--=_b1
Content-Type: text/plain; charset=us-ascii

${text}

${status === undefined ? '' : `--=_b1\nContent-Type: message/delivery-status\n\n${status}\n\n`}${id === undefined ? '' : `--=_b1\nContent-Type: message/rfc822\n\n${copy(id)}\n\n`}${end}
`;
}

export function copy(id: string): string {
  return `From: Acme Desk <desk@acme.example.com>
To: jo@example.net
Subject: Your booking 4471
Message-ID: <${id}>
Date: Mon, 30 Nov 2026 08:40:01 +0000
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8

Your booking is confirmed.`;
}

/** The address that failed is one that ours forwards to; the parts call themselves attachments. */
export function forwarded(id: string): string {
  return `Return-Path: <>
From: Mail Delivery System <MAILER-DAEMON@mx.example.net>
To: desk@acme.example.com
Subject: Delayed Mail (still being retried)
Date: Mon, 30 Nov 2026 08:41:07 +0000
Message-ID: <bounce.5f21@mx.example.net>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
\tboundary="=_b1"

--=_b1
Content-Type: text/plain; charset=us-ascii

This is only a warning, no need to send again.

--=_b1
Content-Type: message/delivery-status;
\tname="details.txt"
Content-Disposition: attachment; filename="details.txt"

Reporting-MTA: dns; mx4.example.net
X-Queue-ID: F0000000000

Final-Recipient: rfc822; jo.box7@store.example.net
Original-Recipient: rfc822;bookings+2B4471@example.net
Action: delayed
Status: 4.3.0
Diagnostic-Code: x-unix; Quota exceeded, could not write
\t/var/mail/box/u/00/INBOX
Will-Retry-Until: Fri, 4 Dec 2026 08:41:00 +0000

--=_b1
Content-Type: text/rfc822-headers;
\tname="Undelivered Message Headers.txt"
Content-Transfer-Encoding: quoted-printable
Content-Disposition: attachment; filename="Undelivered Message Headers.txt"

From: Acme Desk <desk@acme.example.com>
To: bookings+4471@example.net
Subject: Your booking 4471
Message-ID: <${id}>
Date: Mon, 30 Nov 2026 08:40:01 +0000
MIME-Version: 1.0
Content-Type: text/plain; charset=3Dutf-8

--=_b1--
`;
}

/** No MIME parts at all. */
export function plainText(id: string): string {
  return `Return-Path: <>
Received: (qmail 10000 invoked for bounce); 30 Nov 2026 08:41:00 -0000
Date: 30 Nov 2026 08:41:00 -0000
From: MAILER-DAEMON@mx4.example.net
To: desk@acme.example.com
Subject: failure notice

This is the mail program at mx4.example.net.
I could not deliver your message and have stopped trying.

<jo@example.net>:
192.0.2.32 refused the recipient.
Remote host said: 550 Unknown user jo@example.net
Giving up on 192.0.2.32. (#5.1.1)

--- Below this line is a copy of the message.

Return-Path: <desk@acme.example.com>
${copy(id)}
`;
}

/** A gateway has taken the part for machines away, and the words are translated. */
export const TRANSLATED = `Return-Path: <>
From: <postmaster@example.net>
To: desk@acme.example.com
Subject: =?iso-8859-1?Q?Unzustellbar:_Your_booking_4471?=
Message-ID: <n1@PROD.example.net>
Date: Mon, 30 Nov 2026 08:41:00 +0000
Auto-Submitted: auto-replied
X-MS-Exchange-Message-Is-Ndr:
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
\tboundary="=_b1"

--=_b1
Content-Type: multipart/alternative; differences=Content-Type;
\tboundary="=_b2"

--=_b2
Content-Type: text/plain; charset="iso-8859-1"
Content-Transfer-Encoding: quoted-printable

Ihre Nachricht an jo@example.net konnte nicht zugestellt werden.
jo wurde unter example.net nicht gefunden.
Statuscode: 550 5.1.10

--=_b2
Content-Type: text/html; charset="iso-8859-1"

<p>Ihre Nachricht an jo@example.net konnte nicht zugestellt werden.</p>

--=_b2--

--=_b1--
`;
