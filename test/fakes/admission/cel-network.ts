/**
 * Addresses and networks as Kubernetes' CEL library has them (k8s.io/apiserver/pkg/cel/library, ip.go and cidr.go).
 * It shares no code with host/net, which it judges.
 */
import { isIPv4, isIPv6 } from "node:net";

type Length = 32 | 128;

/** An address that is text in no other form than Go's `netip.ParseAddr` takes, without a zone. */
export class Ip {
  readonly length: Length;
  readonly value: bigint;

  constructor(length: Length, value: bigint) {
    this.length = length;
    this.value = value;
  }

  get family(): 4 | 6 {
    return this.length === 32 ? 4 : 6;
  }

  get isLinkLocalUnicast(): boolean {
    return isWithin(this, this.family === 4 ? "169.254.0.0/16" : "fe80::/10");
  }

  /** As Go's: private addresses are global, too. */
  get isGlobalUnicast(): boolean {
    const others =
      this.family === 4
        ? ["0.0.0.0/32", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32"]
        : ["::/127", "fe80::/10", "ff00::/8"];
    return !others.some((each) => isWithin(this, each));
  }

  toString(): string {
    const width = this.family === 4 ? 8n : 16n;
    const parts = Array.from({ length: this.family === 4 ? 4 : 8 }, (_, index) =>
      Number((this.value >> (BigInt(this.length) - width * BigInt(index + 1))) & ((1n << width) - 1n)),
    );
    if (this.family === 4) return parts.join(".");
    // RFC 5952, as WHATWG's URLs write it.
    return new URL(`http://[${parts.map((part) => part.toString(16)).join(":")}]`).hostname.slice(1, -1);
  }
}

export class Cidr {
  readonly ip: Ip;
  readonly prefixLength: number;

  constructor(ip: Ip, prefixLength: number) {
    this.ip = ip;
    this.prefixLength = prefixLength;
  }

  get masked(): Cidr {
    const host = BigInt(this.ip.length - this.prefixLength);
    return new Cidr(new Ip(this.ip.length, (this.ip.value >> host) << host), this.prefixLength);
  }

  contains({ length, value }: Ip): boolean {
    const host = BigInt(this.ip.length - this.prefixLength);
    return length === this.ip.length && value >> host === this.ip.value >> host;
  }

  toString(): string {
    return `${this.ip}/${this.prefixLength}`;
  }
}

const MAPPED = 0xffffn;

/** Returns undefined for text that is no address, an IPv4 address inside IPv6 included. */
export function parseIp(text: string): Ip | undefined {
  if (isIPv4(text)) return new Ip(32, joined(text.split(".").map(Number), 8n));
  if (!isIPv6(text) || text.includes("%")) return undefined;
  const [head = "", tail] = new URL(`http://[${text}]`).hostname.slice(1, -1).split("::");
  const [before, after] = [partsOf(head), partsOf(tail ?? "")];
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0);
  const value = joined([...before, ...zeros, ...after], 16n);
  return value >> 32n === MAPPED ? undefined : new Ip(128, value);
}

function partsOf(text: string): number[] {
  return text === "" ? [] : text.split(":").map((part) => Number.parseInt(part, 16));
}

function joined(parts: readonly number[], width: bigint): bigint {
  return parts.reduce((sum, part) => (sum << width) | BigInt(part), 0n);
}

/** Returns undefined for text that is no network; bits of the host may be set. */
export function parseCidr(text: string): Cidr | undefined {
  const [, address = "", length = ""] = /^([^/]+)\/(0|[1-9][0-9]{0,2})$/.exec(text) ?? [];
  const ip = parseIp(address);
  return ip === undefined || Number(length) > ip.length ? undefined : new Cidr(ip, Number(length));
}

const known = new Map<string, Cidr | undefined>();

function isWithin(ip: Ip, network: string): boolean {
  if (!known.has(network)) known.set(network, parseCidr(network));
  return known.get(network)?.contains(ip) === true;
}
