/**
 * Places where the commands on the pages for users are executed: every block ```sh of README.md and the pages
 * of docs, read from the page itself. A new page needs one row, for the whole page or for each of its sections that
 * differ.
 */

import { readVersion, tagOf } from "../../../scripts/setup/version.mjs";
import { PAUSE_IMAGE } from "../../lab/nodes/image.ts";

/** Each has a test of its own. */
export type Place =
  /** host.test.ts: a folder with the tarball, on a host under systemd without Berth. */
  | "tarball"
  /** cluster.test.ts: an API server with Berth's kinds, rights and some pools; kubectl. */
  | "cluster"
  /** The same after a loss of all of Berth's objects. */
  | "empty cluster"
  /** The unpacked tarball on such a host. */
  | "new host"
  /** The same with Berth installed. */
  | "host"
  /** chart.test.ts: an API server without nodes; helm, and the chart's package. */
  | "helm"
  /** test/long/chart.test.ts: three nodes with the chart's packages, of a release with other names. */
  | "chart"
  /** test/nodes/networks.ts: three nodes with Multus. */
  | "nodes"
  /** test/long/release.test.ts: a checkout with a release in dist/release. */
  | "release"
  /** The same test: the folder of a release, on a machine with containerd. */
  | "release folder";

/** A page, or one section of it under a heading of any level. */
interface Part {
  readonly page: string;
  readonly section?: string;
}

export interface ExecutedPart extends Part {
  readonly place: Place;
  /** Words that a reader replaces on the page, and the test's values for them. */
  readonly words?: Readonly<Record<string, string>>;
  /** Commands that the page says are refused, once each, in the order of the page. */
  readonly refused?: readonly string[];
}

interface OmittedPart extends Part {
  /** Why the commands are not executed here. */
  readonly reason: string;
}

/** In kubectl.long.test.ts each command is executed alone, on an API server with the objects that the page names. */
const SINGLE_COMMANDS = "single commands of kubectl, executed by test/cluster/kubectl.long.test.ts";

/** The names of a release's files. */
export const RELEASE = { VERSION: tagOf(readVersion()), ARCH: process.arch === "arm64" ? "arm64" : "amd64" };

/** The names of test/long/chart.test.ts. */
const CHART_WORDS = {
  "upgrade berth ": "upgrade odd.one ",
  "rollback berth ": "rollback odd.one ",
  "history berth ": "history odd.one ",
  "install berth ": "install odd.one ",
  "kube-system": "strange-place",
};

/** Parts of one place are executed in this order. */
export const PARTS: readonly (ExecutedPart | OmittedPart)[] = [
  { page: "README.md", place: "chart", words: CHART_WORDS },
  { page: "docs/air-gapped.md", place: "release folder", words: RELEASE },
  { page: "docs/backup.md", place: "cluster" },
  { page: "docs/backup.md", section: "Restore of the files", place: "empty cluster" },
  { page: "docs/backup.md", section: "On a host without Kubernetes", place: "host" },
  { page: "docs/chart.md", place: "helm", words: RELEASE },
  {
    page: "docs/controller.md",
    reason: "needs the controller's port; test/cluster/controller.test.ts reads that path",
  },
  { page: "docs/garbage-collection.md", place: "cluster", words: { NAME: "n9" } },
  { page: "docs/getting-started.md", place: "tarball", words: RELEASE },
  { page: "docs/install-host.md", place: "new host" },
  {
    page: "docs/install-host.md",
    section: "Podman 5",
    reason: "Debian 12 has Podman 4; packages/netavark/test/long/podman.test.ts runs these commands",
  },
  {
    page: "docs/install-host.md",
    section: "In a cluster",
    reason:
      "two machines; kubectl.long.test.ts executes the commands of one, install-host.test.ts those of the other, host-token.test.ts the renewal",
  },
  { page: "docs/monitoring.md", place: "host" },
  {
    page: "docs/migration.md",
    reason: "needs the kinds of other IPAMs; packages/convert/test/cluster/convert.test.ts runs each of these commands",
  },
  { page: "docs/multus.md", place: "nodes", words: { "registry.k8s.io/pause:3.10.1": PAUSE_IMAGE } },
  { page: "docs/network.md", place: "cluster" },
  { page: "docs/pool-status.md", reason: SINGLE_COMMANDS },
  { page: "docs/records.md", place: "host" },
  { page: "docs/develop/release.md", place: "release" },
  {
    page: "docs/develop/release.md",
    section: "Build",
    reason: "release.test.ts does the same into a folder of its own",
  },
  { page: "docs/develop/release.md", section: "berthctl alone", reason: "release-berthctl.test.ts installs it" },
  { page: "docs/develop/release.md", section: "Sign", reason: "needs a registry and the publisher's key" },
  {
    page: "docs/develop/release.md",
    section: "Publish",
    reason: "test/e2e/publish.long.test.ts and test/long/registry.test.ts do the same",
  },
  {
    page: "docs/develop/release.md",
    section: "Known vulnerabilities",
    reason: "needs a database that is not reached here",
  },
  {
    page: "docs/develop/release.md",
    section: "What was checked about Node.js",
    reason: "needs nodejs.org, which is not reached here",
  },
  { page: "docs/scheduling-gate.md", reason: SINGLE_COMMANDS },
  { page: "docs/security.md", reason: SINGLE_COMMANDS },
  { page: "docs/services.md", reason: SINGLE_COMMANDS },
  { page: "docs/uninstall.md", place: "chart", words: CHART_WORDS },
  { page: "docs/uninstall.md", section: "While addresses are in use", place: "chart", words: CHART_WORDS },
  { page: "docs/uninstall.md", section: "Nodes that do not answer", place: "chart", words: CHART_WORDS },
  { page: "docs/upgrade.md", section: "Upgrade", place: "chart", words: CHART_WORDS },
  {
    page: "docs/upgrade.md",
    section: "Rollback",
    place: "chart",
    words: CHART_WORDS,
    refused: ["helm rollback odd.one --namespace strange-place --wait --timeout 2m"],
  },
];

export function isExecuted(part: ExecutedPart | OmittedPart): part is ExecutedPart {
  return "place" in part;
}
