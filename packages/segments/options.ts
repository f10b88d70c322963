/** The options of `berth-controller` about the hub and the IPAM of record. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseName, seconds } from "../../host/bin/option-values.ts";
import type { Product } from "./record-server/prefix-server.ts";

/** Time for which a pod has an address before it is written into the IPAM of record: milliseconds. */
const RECORDS_INTERVAL_MS = 60_000;

export interface SegmentFlags {
  readonly configNamespace: string;
  readonly hubKubeconfig?: string;
  readonly hubMember?: string;
  readonly recordsServer?: Product;
  readonly recordsUrl?: string;
  readonly recordsTokenFile?: string;
  readonly recordsCaFile?: string;
  readonly recordsCluster?: string;
  readonly recordsAddresses?: true;
  readonly recordsInterval: number;
  readonly recordsTag: string;
  readonly recordsDomain: string;
  readonly recordsSpace: ReadonlyMap<string, string>;
}

export function addSegmentOptions(program: Command): void {
  program
    .option("--hub-kubeconfig <file>", "kubeconfig of the API server whose AddressRanges pools take blocks from")
    .addOption(
      new Option("--hub-member <name>", "name of this cluster in its RangeMembers of the hub").argParser(parseName),
    )
    .addOption(
      new Option("--records-server <product>", "product of the IPAM of record").choices(["nautobot", "netbox"]),
    )
    .option("--records-url <url>", "its address: https://HOST, with a path if it is below one")
    .option("--records-token-file <file>", "file with a token of its API; read again when it changes")
    .option("--records-ca-file <file>", "certificates of its authority, in place of the public ones (PEM)")
    .addOption(new Option("--records-cluster <name>", "name of this cluster in its entries").argParser(parseShown))
    .option("--records-addresses", "write the addresses of pods into it")
    .addOption(seconds("--records-interval", "how long a pod has an address before it is written", RECORDS_INTERVAL_MS))
    .addOption(new Option("--records-tag <name>", "tag of these entries").argParser(parseShown).default("berth"))
    .addOption(
      new Option("--records-domain <name>", "suffix of their DNS names: POD.NAMESPACE.NAME")
        .argParser(parseName)
        .default("", "none"),
    )
    .addOption(
      new Option(
        "--records-space <space=name>",
        "namespace of Nautobot or VRF of NetBox for an address space; may be repeated, and others are not written",
      )
        .argParser(parseSpace)
        .default(new Map(), "the default space: Global, or no VRF"),
    );
}

/** `=Global`, `blue=Blue VRF`. */
function parseSpace(text: string, before: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const [, space = "", name = ""] = /^([-a-z0-9]{0,63})=([^=]{0,100})$/.exec(text) ?? [];
  if (!text.includes("=") || `${space}=${name}` !== text)
    throw new InvalidArgumentError(`expected SPACE=NAME, the address space of pools first, found "${text}"`);
  if ([...before].some(([other, taken]) => other === space || taken === name))
    throw new InvalidArgumentError(`expected each address space and each name once, found "${text}" again`);
  return new Map([...before, [space, name]]);
}

function parseShown(text: string): string {
  if (!/^[!-~](?:[ -~]{0,48}[!-~])?$/.test(text))
    throw new InvalidArgumentError(`expected 1 to 50 characters of ASCII, found "${text}"`);
  return text;
}
