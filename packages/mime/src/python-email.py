"""Reads messages with Python's email package and prints what it found, for a test that compares it.

stdin: JSON list of base64 messages; stdout: JSON list of readings.
"""
import base64
import email
import email.policy
import hashlib
import json
import sys

POLICY = email.policy.SMTP.clone(raise_on_defect=True)


def mailboxes(header):
    if header is None:
        return []
    return [[box.display_name, box.addr_spec] for box in header.addresses]


def reading(raw):
    message = email.message_from_bytes(raw, policy=POLICY)
    defects = [repr(defect) for part in message.walk() for defect in part.defects]
    for part in message.walk():
        for value in part.values():
            defects += [f"{value}: {defect!r}" for defect in getattr(value, "defects", ())]
    bodies = {kind: message.get_body((kind,)) for kind in ("plain", "html")}
    shown = [part for part in bodies.values() if part is not None]
    attachments = []
    for part in message.walk():
        if part.is_multipart() or part in shown:
            continue
        cid = part["Content-ID"]
        attachments.append({
            "filename": part.get_filename(),
            "content_type": part.get_content_type(),
            "content_id": None if cid is None else str(cid).strip("<>"),
            "sha256": hashlib.sha256(part.get_payload(decode=True)).hexdigest(),
        })
    return {
        "defects": defects,
        "subject": str(message["Subject"]),
        "from": mailboxes(message["From"]),
        "reply_to": mailboxes(message["Reply-To"]),
        "to": mailboxes(message["To"]),
        "cc": mailboxes(message["Cc"]),
        "text": None if bodies["plain"] is None else bodies["plain"].get_content(),
        "html": None if bodies["html"] is None else bodies["html"].get_content(),
        "attachments": attachments,
        "message_id": str(message["Message-ID"]),
        "references": str(message["References"] or "").split(),
    }


results = []
for encoded in json.load(sys.stdin):
    try:
        results.append(reading(base64.b64decode(encoded)))
    except Exception as error:  # the test shows it with the message's name
        results.append({"defects": [f"raised {error!r}"]})
json.dump(results, sys.stdout)
