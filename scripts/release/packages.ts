/**
 * Packages of Debian's and of Red Hat's format for one processor, made by nfpm of the contents of the tarball for
 * hosts. The service and documentation are where a distribution has them; the package's scripts (deploy/packages) put
 * plugins where runtimes look for them.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempDisposableSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { stringify } from "yaml";
import { referenceTool, root } from "../setup/paths.mjs";
import type { ArchiveEntry } from "./archive.ts";
import { type Facts, HOME } from "./facts.ts";
import { below } from "./product.ts";
import type { Architecture } from "./sources.ts";

export const FORMATS = ["deb", "rpm"] as const;
type Format = (typeof FORMATS)[number];

const SOURCES = join(root, "deploy", "packages");
const LIBRARY = "usr/lib/berth";
const DOCUMENTATION = "usr/share/doc/berth";
const MAINTAINER = "The maintainers of Berth <berth@vendor.io>";
const USER_PROGRAMS = ["berthctl", "kubectl-berth", "kubectl_complete-berth"];
/** Changes to these by an administrator survive an upgrade. */
const SETTINGS = new Set(["etc/berth/agent.env", "etc/logrotate.d/berth"]);
/** nfpm's names of the scripts, and the files that Debian's and Red Hat's are written in. */
const SCRIPTS = {
  deb: { preinstall: "preinst", postinstall: "postinst", preremove: "prerm", postremove: "postrm" },
  rpm: { preinstall: "pre", postinstall: "post", preremove: "preun", postremove: "postun" },
} as const;
/** The libraries that Node.js links; libatomic is inside. */
const NEEDS = {
  deb: ["libc6 (>= 2.28)", "libgcc-s1", "libstdc++6 (>= 9)"],
  rpm: ["glibc >= 2.28", "libgcc", "libstdc++", "systemd"],
} as const;

/** Older than the release of the same number, in the order of both formats. */
export function packageVersion(version: string): string {
  return version.replaceAll("-", "~");
}

/** Returns the package's files; `host` are those of the tarball. */
export function packageEntries(host: readonly ArchiveEntry[], facts: Facts): ArchiveEntry[] {
  const file = (path: string, content: string | Buffer) => ({ path, mode: 0o644, content: Buffer.from(content) });
  const compressed = (path: string, content: string | Uint8Array) =>
    file(`${path}.gz`, gzipSync(Buffer.from(content), { level: 9 }));
  const text = (path: string) => String(host.find((entry) => entry.path === path)?.content);
  const source = (path: string) => readFileSync(join(root, path), "utf8");
  const pages = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
  return [
    ...below(LIBRARY, host.filter(({ path, content }) => /^(?:bin|lib|cni)\//.test(path) && content).map(asLibrary)),
    ...USER_PROGRAMS.map((name) => ({ path: `usr/bin/${name}`, mode: 0o777, target: `../lib/berth/bin/${name}` })),
    ...below(
      "usr",
      host.filter(({ path, content }) => path.startsWith("share/") && content),
    ),
    // Where netavark of Podman 5 looks for drivers.
    { path: "usr/lib/netavark/berth", mode: 0o777, target: "../berth/cni/berth" },
    file(
      "usr/lib/systemd/system/berth-agent.service",
      text("systemd/berth-agent.service").replaceAll("/opt/berth/current", `/${LIBRARY}`),
    ),
    file("usr/lib/tmpfiles.d/berth.conf", text("systemd/berth.tmpfiles.conf")),
    file("etc/logrotate.d/berth", text("systemd/berth.logrotate")),
    file("etc/berth/agent.env", source("deploy/packages/agent.env")),
    { path: "etc/berth/pools.d", mode: 0o755 },
    file(`${DOCUMENTATION}/README.md`, source("README.md")),
    ...pages.map((name) => file(`${DOCUMENTATION}/docs/${name}`, source(`docs/${name}`))),
    file(`${DOCUMENTATION}/examples/pool.yaml`, text("examples/pool.yaml")),
    file(`${DOCUMENTATION}/copyright`, source("deploy/packages/copyright")),
    compressed(`${DOCUMENTATION}/THIRD_PARTY_LICENSES`, text("THIRD_PARTY_LICENSES")),
    compressed(`${DOCUMENTATION}/changelog`, source("CHANGELOG.md")),
    compressed(`${DOCUMENTATION}/changelog.Debian`, debianChangelog(facts)),
    file("usr/share/lintian/overrides/berth", source("deploy/packages/lintian-overrides")),
  ];
}

/** Launchers name the program and its Node.js, so the bundles are files to read. The lines keep their numbers. */
function asLibrary(entry: ArchiveEntry): ArchiveEntry {
  if (!entry.path.endsWith(".mjs")) return /\.(?:node|so\.1)$/.test(entry.path) ? { ...entry, mode: 0o644 } : entry;
  return {
    ...entry,
    mode: 0o644,
    content: Buffer.from(String(Buffer.from(entry.content ?? [])).replace(/^#!.*/, "//")),
  };
}

function debianChangelog({ version, timeSeconds }: Facts): string {
  const date = new Date(timeSeconds * 1000).toUTCString().replace("GMT", "+0000");
  return `berth (${packageVersion(version)}-1) unstable; urgency=medium\n\n  * Packaged; for its changes see changelog.gz.\n\n -- ${MAINTAINER}  ${date}\n`;
}

/** Returns a script of the package: the common functions, and the part for this moment. */
function scriptText(format: Format, moment: string): string {
  const read = (name: string) => readFileSync(join(SOURCES, name), "utf8");
  return `#!/bin/sh\nset -e\n\n${read("common.sh")}\n${read(`${moment}.${format}.sh`)}`;
}

/** Returns the package. The same entries and facts give the same bytes. */
export function writePackage(
  format: Format,
  architecture: Architecture,
  entries: readonly ArchiveEntry[],
  { version, description, timeSeconds }: Facts,
): Buffer {
  using folder = mkdtempDisposableSync(join(tmpdir(), "berth-package-"));
  const place = (name: string, content: string | Uint8Array) => {
    const path = join(folder.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  };
  const contents = entries.map(({ path, mode, content, target }) => {
    const dst = `/${format === "deb" ? path.replace("zsh/site-functions", "zsh/vendor-completions") : path}`;
    if (target !== undefined) return { src: target, dst, type: "symlink" };
    if (content === undefined) return { dst, type: "dir", file_info: { mode } };
    const type = SETTINGS.has(path)
      ? { type: "config|noreplace" }
      : // rpm's word for what an installation without documentation leaves out; a deb would not have it at all.
        format === "rpm" && /^usr\/share\/doc\//.test(path) && { type: "doc" };
    return { src: place(join("files", path), content), dst, ...type, file_info: { mode } };
  });
  const [summary = "", detail = ""] = description.split(": ");
  const config = {
    ...{ name: "berth", arch: architecture, platform: "linux", version: packageVersion(version), release: "1" },
    ...{ version_schema: "none", section: "net", priority: "optional", maintainer: MAINTAINER, vendor: "Berth" },
    ...{ homepage: HOME, license: "Apache-2.0", mtime: new Date(timeSeconds * 1000).toISOString() },
    description: `${summary}\nBerth gives pods ${detail.replace(", ", ",\n")}.\nThis package has the agent of a node, the CNI plugins and berthctl.`,
    depends: NEEDS[format],
    scripts: Object.fromEntries(
      Object.entries(SCRIPTS[format]).map(([key, moment]) => [key, place(moment, scriptText(format, moment))]),
    ),
    ...{ contents, deb: { compression: "gzip" }, rpm: { compression: "gzip", summary, buildhost: "berth" } },
  };
  const output = join(folder.path, `berth.${format}`);
  const nfpm = join(referenceTool("nfpm").directory, "nfpm");
  const argv = ["package", "--config", place("nfpm.yaml", stringify(config)), "--packager", format, "--target", output];
  execFileSync(nfpm, argv, { stdio: "pipe", env: { ...process.env, SOURCE_DATE_EPOCH: String(timeSeconds) } });
  return readFileSync(output);
}
