/** Certificates of P-256 keys: an authority, and those that it signs for TLS servers. Node.js verifies them. */

import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  randomBytes,
  X509Certificate,
} from "node:crypto";
import { BitString, Integer, OctetString, Utf8String } from "asn1js";
import {
  AltName,
  AttributeTypeAndValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  Extension,
  ExtKeyUsage,
  GeneralName,
  RelativeDistinguishedNames,
  Time,
  TimeType,
} from "pkijs";
import { tryOr } from "../../lib/try-or.ts";
import { bitsOf, formatIp, parseIp } from "../../net/ip.ts";

export interface Pair {
  readonly cert: string;
  readonly key: string;
}

export interface Validity {
  readonly from: Date;
  readonly to: Date;
}

const P256 = { name: "ECDSA", namedCurve: "P-256" };

interface Contents {
  readonly issuer: string;
  readonly issuerKey: string;
  readonly subject: string;
  readonly subjectKey: string;
  readonly validity: Validity;
  readonly extensions: readonly Extension[];
}

/** Returns the certificate as PEM, signed with the issuer's key. */
async function writeCertificate(contents: Contents): Promise<string> {
  const { issuer, issuerKey, subject, subjectKey, validity, extensions } = contents;
  const [first = 0, ...serial] = randomBytes(16);
  const certificate = new Certificate({
    version: 2,
    // Positive, and of the full length.
    serialNumber: new Integer({ valueHex: Uint8Array.of((first & 0x3f) | 0x40, ...serial) }),
    issuer: nameOf(issuer),
    subject: nameOf(subject),
    notBefore: timeOf(validity.from),
    notAfter: timeOf(validity.to),
    extensions: [
      extension("2.5.29.14", new OctetString({ valueHex: keyId(subjectKey) })),
      extension(
        "2.5.29.35",
        new AuthorityKeyIdentifier({ keyIdentifier: new OctetString({ valueHex: keyId(issuerKey) }) }).toSchema(),
      ),
      ...extensions,
    ],
  });
  await certificate.subjectPublicKeyInfo.importKey(createPublicKey(subjectKey).toCryptoKey(P256, true, ["verify"]));
  await certificate.sign(createPrivateKey(issuerKey).toCryptoKey(P256, false, ["sign"]), "SHA-256");
  return new X509Certificate(Buffer.from(certificate.toSchema(true).toBER())).toString();
}

function extension(extnID: string, value: { toBER(): ArrayBuffer }, critical = false): Extension {
  return new Extension({ extnID, critical, extnValue: value.toBER() });
}

function nameOf(commonName: string): RelativeDistinguishedNames {
  const value = new Utf8String({ value: commonName });
  return new RelativeDistinguishedNames({ typesAndValues: [new AttributeTypeAndValue({ type: "2.5.4.3", value })] });
}

/** RFC 5280 §4.1.2.5: without parts of a second. */
function timeOf(date: Date): Time {
  const type = date.getUTCFullYear() < 2050 ? TimeType.UTCTime : TimeType.GeneralizedTime;
  return new Time({ type, value: new Date(Math.floor(date.getTime() / 1_000) * 1_000) });
}

/** RFC 5280 §4.2.1.6: an address as bytes, or a DNS name. */
function alternativeName(name: string): GeneralName {
  const ip = parseIp(name);
  if (ip === undefined) return new GeneralName({ type: 2, value: name });
  const valueHex = Buffer.from(ip.value.toString(16).padStart(bitsOf(ip.family) / 4, "0"), "hex");
  return new GeneralName({ type: 7, value: new OctetString({ valueHex }) });
}

/** The identifier of a key, in its certificate and in those that it signed. */
function keyId(key: string): Buffer {
  const spki = createPublicKey(key).export({ type: "spki", format: "der" });
  return hash("sha256", spki, "buffer").subarray(0, 20);
}

function makeKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

function isKey(text: string): boolean {
  return tryOr(() => createPrivateKey(text).asymmetricKeyDetails?.namedCurve === "prime256v1", false);
}

/** `first`: the first byte of the bits, of which the last `unusedBits` do not count. */
function keyUsage(first: number, unusedBits: number): Extension {
  return extension("2.5.29.15", new BitString({ valueHex: Uint8Array.of(first), unusedBits }), true);
}

/** Returns an authority; with an earlier one's key, certificates that it signed remain valid. */
export async function makeAuthority(name: string, validity: Validity, earlierKey = ""): Promise<Pair> {
  const key = isKey(earlierKey) ? earlierKey : makeKey();
  const constraints = new BasicConstraints({ cA: true }).toSchema();
  // keyCertSign.
  const extensions = [extension("2.5.29.19", constraints, true), keyUsage(0x04, 2)];
  const names = { issuer: name, issuerKey: key, subject: name, subjectKey: key };
  return { key, cert: await writeCertificate({ ...names, validity, extensions }) };
}

/** Returns a certificate with its own key for TLS servers of these DNS names and addresses. */
export async function issueCertificate(authority: Pair, names: readonly string[], validity: Validity): Promise<Pair> {
  const key = makeKey();
  const issuer = new X509Certificate(authority.cert).subject.replace(/^CN=/, "");
  const extensions = [
    extension("2.5.29.17", new AltName({ altNames: names.map(alternativeName) }).toSchema()),
    // digitalSignature.
    keyUsage(0x80, 7),
    // serverAuth.
    extension("2.5.29.37", new ExtKeyUsage({ keyPurposes: ["1.3.6.1.5.5.7.3.1"] }).toSchema()),
  ];
  const subject = { subject: "berth", subjectKey: key };
  return { key, cert: await writeCertificate({ issuer, issuerKey: authority.key, ...subject, validity, extensions }) };
}

interface Wanted {
  /** Default: the certificate is an authority's own. */
  readonly authority?: Pair;
  readonly names?: readonly string[];
  readonly now: Date;
  /** Time for which it must still be valid: milliseconds. */
  readonly leftMs: number;
}

/** Returns whether this authority issued the pair for these names, and it is and remains valid. */
export function isUsable({ cert, key }: Pair, wanted: Wanted): boolean {
  try {
    const found = new X509Certificate(cert);
    const { authority = { cert, key }, names = [], now, leftMs } = wanted;
    const issuer = new X509Certificate(authority.cert);
    return (
      found.checkPrivateKey(createPrivateKey(key)) &&
      found.verify(issuer.publicKey) &&
      found.validFromDate <= now &&
      found.validToDate.getTime() - now.getTime() > leftMs &&
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
