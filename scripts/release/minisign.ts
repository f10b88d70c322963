/**
 * Keys and signatures in minisign's format (https://jedisct1.github.io/minisign/#signature-format): Ed25519 of the
 * BLAKE2b hash of a file, so the same file and key give the same signature.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, scryptSync, sign, verify } from "node:crypto";

export interface Key {
  /** As minisign prints it. */
  readonly id: string;
  readonly key: KeyObject;
}

export interface Signature {
  /** The ID of the key that it names. */
  readonly id: string;
  /** Its trusted comment, which is signed too. */
  readonly comment: string;
  readonly fits: boolean;
}

const OF_FILE = "Ed";
const OF_HASH = "ED";
/** The header of an Ed25519 key in DER (RFC 8410 §7). */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");
/** libsodium's limits for sensitive keys, by which minisign encrypts, and scrypt's parameters that follow from them. */
const SENSITIVE = { opslimit: 33_554_432n, memlimit: 1_073_741_824n };
const SCRYPT = { cost: 2 ** 20, blockSize: 8, parallelization: 1, maxmem: 1_200_000_000 };

const hash = (content: Uint8Array): Buffer => createHash("blake2b512").update(content).digest();
const formatId = (id: Buffer): string => Buffer.from(id).reverse().toString("hex").toUpperCase();
/** Line `index` of a file, of which the first is a comment. */
const decodeLine = (text: string, index: number): Buffer => Buffer.from(text.split(/\r?\n/)[index] ?? "", "base64");

/** Returns the key of a file that `minisign -G` wrote; throws for another text. */
export function parsePublicKey(text: string): Key {
  const bytes = decodeLine(text, 1);
  if (bytes.length !== 42 || bytes.toString("latin1", 0, 2) !== OF_FILE)
    throw new Error("This is no public key of minisign");
  return { id: formatId(bytes.subarray(2, 10)), key: publicKeyOf(bytes.subarray(10)) };
}

function publicKeyOf(bytes: Buffer): KeyObject {
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: bytes.toString("base64url") }, format: "jwk" });
}

/**
 * Returns the key of a secret key file of minisign, which is encrypted unless it was made with `-W`. Throws for another
 * text and for a wrong password.
 */
export function parseSecretKey(text: string, password: string | undefined): Key {
  // signature, kdf, checksum: 2 each | salt: 32 | opslimit, memlimit: 8 each |
  // key ID: 8, seed: 32, public key: 32, checksum: 32, these four encrypted
  const bytes = decodeLine(text, 1);
  if (bytes.length !== 158 || bytes.toString("latin1", 0, 2) !== OF_FILE)
    throw new Error("This is no secret key of minisign");
  const secret = bytes.subarray(54);
  if (bytes.toString("latin1", 2, 4) === "Sc") {
    if (password === undefined) throw new Error("The secret key is encrypted, and there is no password");
    if (bytes.readBigUInt64LE(38) !== SENSITIVE.opslimit || bytes.readBigUInt64LE(46) !== SENSITIVE.memlimit)
      throw new Error("The secret key is encrypted with other limits than minisign's usual ones");
    const stream = scryptSync(password, bytes.subarray(6, 38), secret.length, SCRYPT);
    for (const [index, byte] of stream.entries()) secret[index] = (secret[index] as number) ^ byte;
  }
  const der = Buffer.concat([PKCS8, secret.subarray(8, 40)]);
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  if (createPublicKey(key).export({ format: "jwk" }).x !== secret.toString("base64url", 40, 72))
    throw new Error("The secret key is damaged, or its password is another");
  return { id: formatId(secret.subarray(0, 8)), key };
}

/** Returns the text of a signature file. */
export function writeSignature(content: Uint8Array, { id, key }: Key, comment: string): string {
  const signature = sign(null, hash(content), key);
  const global = sign(null, Buffer.concat([signature, Buffer.from(comment)]), key);
  const first = Buffer.concat([Buffer.from(OF_HASH), Buffer.from(id, "hex").reverse(), signature]);
  const lines = [`untrusted comment: key ${id}`, first.toString("base64"), `trusted comment: ${comment}`];
  return `${[...lines, global.toString("base64")].join("\n")}\n`;
}

/** Reads a signature file and compares it with the file that it belongs to; undefined for another text. */
export function readSignature(text: string, content: Uint8Array, { key }: Key): Signature | undefined {
  const [first, global] = [decodeLine(text, 1), decodeLine(text, 3)];
  const comment = /^trusted comment: (.*)$/m.exec(text)?.[1];
  const algorithm = first.toString("latin1", 0, 2);
  if (first.length !== 74 || global.length !== 64 || comment === undefined) return undefined;
  if (algorithm !== OF_HASH && algorithm !== OF_FILE) return undefined;
  const signature = first.subarray(10);
  const signed = algorithm === OF_HASH ? hash(content) : content;
  const fits =
    verify(null, signed, key, signature) && verify(null, Buffer.concat([signature, Buffer.from(comment)]), key, global);
  return { id: formatId(first.subarray(2, 10)), comment, fits };
}
