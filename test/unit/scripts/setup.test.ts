import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { runHelm } from "../../../scripts/chart/helm.ts";
import { packageVersion } from "../../../scripts/release/packages.ts";
import { buildVersion, developmentVersion, tagOf } from "../../../scripts/setup/version.mjs";
import { temporaryDirectory } from "../../world/temporary-directory.ts";

let directory = "";
beforeEach(() => {
  directory = temporaryDirectory("berth-unit-", onTestFinished);
});

describe("a build", () => {
  const git = (...args: string[]) => {
    const settings = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
    const { status, stdout, stderr } = spawnSync("git", [...settings, ...args], { cwd: directory, encoding: "utf8" });
    expect(status, stderr).toBe(0);
    return stdout.trim();
  };
  const commit = (text: string) => {
    writeFileSync(join(directory, "file"), text);
    git("add", "file");
    git("commit", "-qm", text);
    return git("rev-parse", "HEAD");
  };
  const short = () => git("rev-parse", "--short=12", "HEAD");
  const version = "0.9.0-rc.0.dev";

  test("between releases has the number of commits since the last one, and its commit", () => {
    git("init", "-q");
    commit("before");
    const since = commit("release");
    expect(buildVersion({ version, since, directory })).toBe(`0.9.0-rc.0.dev.0+${short()}`);
    commit("one");
    commit("two");
    writeFileSync(join(directory, "untracked"), "");
    expect(buildVersion({ version, since, directory })).toBe(`0.9.0-rc.0.dev.2+${short()}`);
    writeFileSync(join(directory, "file"), "changed");
    expect(buildVersion({ version, since, directory })).toBe(`0.9.0-rc.0.dev.2+${short()}.dirty`);
  });

  test.each(["0.9.0", "1.0.0-rc.1"])("of a release is the release's: %s", (released) => {
    git("init", "-q");
    const since = commit("release");
    commit("one");
    expect(buildVersion({ version: released, since, directory })).toBe(released);
  });

  test("of an unpacked source archive has neither, also inside another repository", () => {
    expect(buildVersion({ version, directory })).toBe(version);
    git("init", "-q");
    commit("one");
    const inside = join(directory, "inside");
    mkdirSync(inside);
    expect(buildVersion({ version, directory: inside })).toBe(version);
  });

  test("has a version in the form of Semantic Versioning, and a tag that registries accept", () => {
    const built = buildVersion();
    expect(built).toMatch(/^\d+\.\d+\.\d+(-rc\.\d+(\.dev(\.\d+)?(\+[0-9a-f]{12}(\.dirty)?)?)?)?$/);
    expect(tagOf("0.9.0-rc.0.dev.2+0123456789ab.dirty")).toBe("0.9.0-rc.0.dev.2_0123456789ab.dirty");
    expect(tagOf(built)).toMatch(/^\w[\w.-]{0,127}$/);
  });
});

describe("each build is newer than those before it", () => {
  const releases = ["0.4.0", "1.0.0-rc.1", "1.0.0-rc.2", "1.0.0", "1.0.1", "1.1.0-rc.1", "1.1.0-rc.10", "1.1.0"];
  const builds = releases.flatMap((next, at) => {
    const before = releases[at - 1];
    if (before === undefined) return [next];
    const development = developmentVersion(next, before);
    return [development, `${development}.9+ffffffffffff`, `${development}.12+0123456789ab.dirty`, next];
  });
  const pairs = builds.slice(1).map((newer, at) => [builds[at] ?? "", newer] as const);

  test.each(pairs)("for dpkg: %s, %s", (...pair) => {
    const [older = "", newer = ""] = pair.map((each) => `${packageVersion(each)}-1`);
    execFileSync("dpkg", ["--compare-versions", older, "lt", newer]);
  });

  test("for Helm, by tags of a registry", () => {
    mkdirSync(join(directory, "templates"));
    writeFileSync(join(directory, "Chart.yaml"), "{apiVersion: v2, name: order, version: 0.0.0}");
    const template = pairs.map((pair) => {
      const [older, newer] = pair.map((each) => tagOf(each).replace("_", "+"));
      return `{{ (semver "${newer}").Compare (semver "${older}") }}`;
    });
    writeFileSync(join(directory, "templates", "order.yaml"), `order: [${template}]`);
    expect(runHelm("template", directory)).toContain(`order: [${pairs.map(() => "1")}]`);
  });
});
