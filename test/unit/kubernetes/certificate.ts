/**
 * Certificates that sign themselves, for TLS servers and clients of tests: version 3, P-256, for the address
 * 127.0.0.1, valid for years. Node.js has no builder for these; X.509 (RFC 5280 §4.1) in DER is little.
 */
import { generateKeyPairSync, sign } from "node:crypto";

/** Tag, length, value. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...head]), value]);
}

const SEQUENCE = 0x30;
const oid = (...bytes: readonly number[]) => der(0x06, Buffer.from(bytes));
const integer = (...bytes: readonly number[]) => der(0x02, Buffer.from(bytes));
const time = (text: string) => der(0x17, Buffer.from(text));

const ECDSA_WITH_SHA256 = der(SEQUENCE, oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
const SUBJECT_ALT_NAME = oid(0x55, 0x1d, 0x11);

/** PEM. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

export function makeCertificate(commonName: string, serial: number): Pair {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const attribute = der(SEQUENCE, oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from(commonName)));
  const name = der(SEQUENCE, der(0x31, attribute));
  const address = der(SEQUENCE, der(0x87, Buffer.from([127, 0, 0, 1])));
  const extension = der(SEQUENCE, SUBJECT_ALT_NAME, der(0x04, address));
  const content = der(
    SEQUENCE,
    der(0xa0, integer(2)),
    integer(serial),
    ECDSA_WITH_SHA256,
    name,
    der(SEQUENCE, time("200101000000Z"), time("491231235959Z")),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, der(SEQUENCE, extension)),
  );
  const signature = sign("sha256", content, privateKey);
  const certificate = der(SEQUENCE, content, ECDSA_WITH_SHA256, der(0x03, Buffer.from([0]), signature));
  // No empty line at the end of a text that fills its lines: OpenSSL would stop reading there.
  const text = certificate
    .toString("base64")
    .match(/.{1,64}/g)
    ?.join("\n");
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}
