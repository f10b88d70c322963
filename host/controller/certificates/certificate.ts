/**
 * Certificates of P-256 keys: an authority, and what it signs for TLS servers. Node.js reads certificates and makes
 * none; X.509 version 3 (RFC 5280 §4.1) in DER takes little.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { bitsOf, formatIp, parseIp } from "../../net/ip.ts";

/** PEM. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

export interface Validity {
  readonly from: Date;
  readonly to: Date;
}

/** Tag, length, value (X.690 §8.1). */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...head]), value]);
}

const SEQUENCE = 0x30;
const OCTETS = 0x04;
const bytes = (...values: readonly number[]) => Buffer.from(values);
const oid = (...values: readonly number[]) => der(0x06, bytes(...values));
const TRUE = der(0x01, bytes(255));

const ECDSA_WITH_SHA256 = der(SEQUENCE, oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
const COMMON_NAME = oid(0x55, 0x04, 0x03);
const SERVER_AUTH = oid(0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01);

/** An extension of the arc 2.5.29. */
function extension(number: number, value: Uint8Array, isCritical = false): Buffer {
  return der(SEQUENCE, oid(0x55, 0x1d, number), ...(isCritical ? [TRUE] : []), der(OCTETS, value));
}

/** UTCTime until 2049, GeneralizedTime from then on (RFC 5280 §4.1.2.5). */
function time(date: Date): Buffer {
  const digits = `${date.toISOString().slice(0, 19).replace(/\D/g, "")}Z`;
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits));
}

function nameOf(commonName: string): Buffer {
  const attribute = der(SEQUENCE, COMMON_NAME, der(0x0c, Buffer.from(commonName)));
  return der(SEQUENCE, der(0x31, attribute));
}

/** Returns the extension for these DNS names and addresses. */
export function alternativeNames(names: readonly string[]): Buffer {
  return extension(17, der(SEQUENCE, ...names.map(alternativeName)));
}

function alternativeName(name: string): Buffer {
  const ip = parseIp(name);
  if (ip === undefined) return der(0x82, Buffer.from(name));
  return der(0x87, Buffer.from(ip.value.toString(16).padStart(bitsOf(ip.family) / 4, "0"), "hex"));
}

interface Contents {
  readonly issuer: string;
  readonly issuerKey: string;
  readonly subject: string;
  readonly subjectKey: string;
  readonly validity: Validity;
  readonly extensions: readonly Uint8Array[];
}

/** The identifier of a key in certificates that it has signed, and in its own. */
function keyId(key: string): Buffer {
  const spki = createPublicKey(key).export({ type: "spki", format: "der" });
  return hash("sha256", spki, "buffer").subarray(0, 20);
}

/** Returns the certificate as PEM, signed with the issuer's key. */
export function writeCertificate({ issuer, issuerKey, subject, subjectKey, validity, extensions }: Contents): string {
  const [first = 0, ...serial] = randomBytes(16);
  const content = der(
    SEQUENCE,
    der(0xa0, der(0x02, bytes(2))),
    // Positive, and of the full length.
    der(0x02, bytes((first & 0x3f) | 0x40, ...serial)),
    ECDSA_WITH_SHA256,
    nameOf(issuer),
    der(SEQUENCE, time(validity.from), time(validity.to)),
    nameOf(subject),
    createPublicKey(subjectKey).export({ type: "spki", format: "der" }),
    der(
      0xa3,
      der(
        SEQUENCE,
        extension(14, der(OCTETS, keyId(subjectKey))),
        extension(35, der(SEQUENCE, der(0x80, keyId(issuerKey)))),
        ...extensions,
      ),
    ),
  );
  const signature = sign("sha256", content, createPrivateKey(issuerKey));
  const whole = der(SEQUENCE, content, ECDSA_WITH_SHA256, der(0x03, bytes(0), signature));
  return new X509Certificate(whole).toString();
}

/** Returns a new private key. */
export function makeKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

function isKey(text: string): boolean {
  try {
    return createPrivateKey(text).asymmetricKeyDetails?.namedCurve === "prime256v1";
  } catch {
    return false;
  }
}

/** Returns an authority; with the key of an earlier one, what that has signed remains valid. */
export function makeAuthority(name: string, validity: Validity, earlierKey = ""): Pair {
  const key = isKey(earlierKey) ? earlierKey : makeKey();
  const extensions = [
    extension(19, der(SEQUENCE, TRUE), true),
    // keyCertSign.
    extension(15, der(0x03, bytes(2, 0x04)), true),
  ];
  const names = { issuer: name, issuerKey: key, subject: name, subjectKey: key };
  return { key, cert: writeCertificate({ ...names, validity, extensions }) };
}

/** Returns a certificate for TLS servers of these DNS names and addresses, with a key of its own. */
export function issueCertificate(authority: Pair, names: readonly string[], validity: Validity): Pair {
  const key = makeKey();
  const issuer = new X509Certificate(authority.cert).subject.replace(/^CN=/, "");
  const extensions = [
    alternativeNames(names),
    // digitalSignature.
    extension(15, der(0x03, bytes(7, 0x80)), true),
    extension(37, der(SEQUENCE, SERVER_AUTH)),
  ];
  const subject = { subject: "berth", subjectKey: key };
  return { key, cert: writeCertificate({ issuer, issuerKey: authority.key, ...subject, validity, extensions }) };
}

/** Returns whether the pair was issued by this authority for these names, and ends after `ends`. */
export function isUsable(
  { cert, key }: Pair,
  wanted: { readonly authority?: Pair; readonly names?: readonly string[]; readonly ends: Date },
): boolean {
  try {
    const found = new X509Certificate(cert);
    const { authority = { cert, key }, names = [], ends } = wanted;
    const issuer = new X509Certificate(authority.cert);
    return (
      found.checkPrivateKey(createPrivateKey(key)) &&
      found.verify(issuer.publicKey) &&
      found.validToDate > ends &&
      names.join() === namesOf(found).join()
    );
  } catch {
    return false;
  }
}

function namesOf({ subjectAltName = "" }: X509Certificate): string[] {
  return subjectAltName
    .split(", ")
    .filter((text) => text !== "")
    .map((text) => text.replace(/^(?:DNS|IP Address):/, ""))
    .map((name) => {
      const ip = parseIp(name);
      return ip === undefined ? name : formatIp(ip);
    });
}
