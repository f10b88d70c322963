/** Lines such as `pod: route default via 10.6.0.1 dev eth0 proto 3` → values of plan/state.ts. */
import type {
  AddressState,
  LinkState,
  NeighbourState,
  NextHopState,
  Place,
  RouteState,
  RuleState,
} from "../../../host/plan/state.ts";
import { ip, mac, prefix } from "../../world/values.ts";

/** A link as its line says it; `peer` and `master` are names. */
export interface LinkWords extends Omit<LinkState, "parent" | "parentElsewhere"> {
  readonly peer: string | undefined;
}

export type Fact =
  | { readonly kind: "link"; readonly link: LinkWords }
  | { readonly kind: "addr"; readonly address: AddressState }
  | { readonly kind: "route"; readonly route: RouteState }
  | { readonly kind: "rule"; readonly rule: RuleState }
  | { readonly kind: "neigh"; readonly neighbour: NeighbourState }
  | { readonly kind: "sysctl"; readonly key: string; readonly value: string }
  | { readonly kind: "table"; readonly name: string }
  /** The whole namespace: it is gone. */
  | { readonly kind: "gone" };

export interface Statement {
  readonly place: Place;
  /** It is not there any more. */
  readonly ends: boolean;
  readonly fact: Fact;
}

const NAMED: Readonly<Record<string, number>> = {
  ...{ kernel: 2, boot: 3, static: 4, ra: 9 },
  ...{ global: 0, link: 253, host: 254 },
};

/** Words in their order; a wanted one that is missing is an error. */
class Words {
  readonly #line: string;
  readonly #words: string[];

  constructor(line: string) {
    this.#line = line;
    this.#words = line.match(/"[^"]*"|\S+/g) ?? [];
  }

  fail(what: string): never {
    throw new Error(`${what} in "${this.#line}"`);
  }

  next(what: string): string {
    return this.#words.shift() ?? this.fail(`No ${what}`);
  }

  /** Takes the word away if it is the next one. */
  has(word: string): boolean {
    if (this.#words[0] !== word) return false;
    this.#words.shift();
    return true;
  }

  /** The value after the word, wherever it stands before the next "nexthop". */
  find(word: string): string | undefined {
    const end = this.#words.indexOf("nexthop");
    const at = this.#words.indexOf(word);
    if (at < 0 || (end >= 0 && at > end)) return undefined;
    return this.#words.splice(at, 2)[1] ?? this.fail(`Nothing after "${word}"`);
  }

  findNumber(word: string): number | undefined {
    const text = this.find(word);
    if (text === undefined) return undefined;
    const value = NAMED[text] ?? Number(text);
    return Number.isInteger(value) ? value : this.fail(`No number after "${word}"`);
  }

  flag(word: string): boolean {
    const at = this.#words.indexOf(word);
    if (at >= 0) this.#words.splice(at, 1);
    return at >= 0;
  }

  end(): void {
    if (this.#words.length > 0) this.fail(`"${this.#words.join(" ")}" means nothing`);
  }
}

const KINDS = new Set(["macvlan", "ipvlan", "veth", "bridge", "vlan", "dummy", "loopback", "device", "openvswitch"]);

function readLink(words: Words): LinkWords {
  const name = words.next("name");
  const kind = words.next("kind");
  if (!KINDS.has(kind)) words.fail(`Unknown kind "${kind}"`);
  const address = words.find("address");
  return {
    name,
    index: words.findNumber("index") ?? 0,
    kind: kind === "device" || kind === "loopback" ? "" : kind,
    loopback: kind === "loopback",
    mac: address === undefined ? undefined : mac(address),
    peer: words.find("peer"),
    master: words.find("master"),
    alias: words.find("alias")?.replaceAll('"', "") ?? "",
    group: words.findNumber("group") ?? 0,
    up: !words.flag("down"),
    carrier: true,
  };
}

const MAIN = 254;
const ONLINK = 4;

function readHops(words: Words): NextHopState[] | undefined {
  const hops: NextHopState[] = [];
  while (words.has("nexthop")) {
    const gateway = words.find("via");
    hops.push({
      link: words.find("dev") ?? words.fail("No device"),
      ...(gateway === undefined ? {} : { gateway: ip(gateway) }),
      weight: words.findNumber("weight") ?? 1,
      flags: 0,
    });
  }
  return hops.length === 0 ? undefined : hops;
}

const TYPES: Readonly<Record<string, number>> = { local: 2, blackhole: 6, unreachable: 7 };

function readRoute(words: Words, family: 4 | 6): RouteState {
  const type = Object.keys(TYPES).find((word) => words.has(word));
  const text = words.next("destination");
  const destination = prefix(text === "default" ? (family === 6 ? "::/0" : "0.0.0.0/0") : text);
  const [gateway, preferredSource] = [words.find("via"), words.find("src")];
  const one = {
    link: words.find("dev"),
    ...(gateway === undefined ? {} : { gateway: ip(gateway) }),
    ...(preferredSource === undefined ? {} : { preferredSource: ip(preferredSource) }),
    flags: words.flag("onlink") ? ONLINK : 0,
    table: words.findNumber("table") ?? MAIN,
    protocol: words.findNumber("proto") ?? words.fail("No proto"),
    scope: words.findNumber("scope") ?? 0,
    metric: words.findNumber("metric") ?? (destination.ip.family === 6 ? 1024 : 0),
  };
  const known = type === undefined ? 1 : (TYPES[type] ?? 1);
  return { destination, type: known, tos: 0, rest: [], ...one, nextHops: readHops(words) };
}

function readRule(words: Words, family: 4 | 6): RuleState {
  const from = words.find("from");
  const to = words.find("to");
  const goto = words.findNumber("goto");
  const mark = words.find("fwmark")?.split("/").map(Number);
  return {
    family,
    preference: words.findNumber("pref") ?? words.fail("No pref"),
    from: from === undefined || from === "all" ? undefined : prefix(from),
    to: to === undefined ? undefined : prefix(to),
    mark: mark && { value: mark[0] ?? 0, mask: mark[1] ?? 0xffff_ffff },
    table: goto === undefined ? (words.findNumber("lookup") ?? words.fail("No lookup")) : 0,
    action: goto === undefined ? 1 : 2,
    goto,
    flags: 0,
    tos: 0,
    protocol: words.findNumber("proto") ?? 0,
    rest: [],
  };
}

function readFact(words: Words): Fact {
  const family = words.has("-6") ? 6 : 4;
  const kind = words.next("kind");
  switch (kind) {
    case "link":
      return { kind, link: readLink(words) };
    case "addr":
      return {
        kind,
        address: {
          prefix: prefix(words.next("prefix")),
          link: words.find("dev") ?? words.fail("No dev"),
          scope: words.findNumber("scope") ?? 0,
          flags: words.findNumber("flags") ?? 0x80,
        },
      };
    case "route":
      return { kind, route: readRoute(words, family) };
    case "rule":
      return { kind, rule: readRule(words, family) };
    case "neigh": {
      const address = ip(words.next("address"));
      const [lladdr, link] = [words.find("lladdr"), words.find("dev")];
      if (lladdr === undefined || link === undefined) words.fail("No lladdr or dev");
      return { kind, neighbour: { ip: address, mac: mac(lladdr), link } };
    }
    case "sysctl": {
      const [key = "", value = ""] = words.next("setting").split("=");
      return { kind, key, value };
    }
    case "table":
      return { kind, name: words.next("name") };
    case "gone":
      return { kind };
    default:
      return words.fail(`Unknown word "${kind}"`);
  }
}

/** `pod: …` or `host: …`; with `no` in front the statement has come to an end. */
export function readStatement(line: string): Statement {
  const words = new Words(line);
  const ends = words.has("no");
  const place = words.has("pod:") ? "pod" : words.has("host:") ? "host" : words.fail("No place");
  const fact = readFact(words);
  words.end();
  return { place, ends, fact };
}
