/** Whoever types a command of ours means Berth's objects, and never those of another project with the same name. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ambiguousNames, ambiguousRights, commandsOf, listTexts } from "./kubectl-lines.ts";
import { root } from "./sources.ts";

const files = listTexts();

describe("no command of kubectl names a kind of Berth without its group", () => {
  it(`in documents, messages and scripts`, () => {
    expect(files.length).toBeGreaterThan(500);
    const found = files.flatMap((path) => {
      const text = readFileSync(join(root, path), "utf8");
      return [...ambiguousNames(text), ...(path.endsWith(".md") ? ambiguousRights(text) : [])].map(
        (name) => `${path}: write the group behind "${name}"`,
      );
    });
    expect(found).toEqual([]);
  });

  it.each<[text: string, found: string[]]>([
    ["kubectl delete ippools --all", ["ippools"]],
    ["see `kubectl -n x get subnet blue -o yaml`", ["subnet"]],
    ["`kubectl get\nipallocations` shows", ["ipallocations"]],
    ["kubectl get pods,ippools", ["ippools"]],
    ["kubectl delete ippool/blue", ["ippool/blue"]],
    ["kubectl explain ippool.spec", ["ippool.spec"]],
    ["kubectl get IPPool", ["IPPool"]],
    ["kubectl get rip", ["rip"]],
    ["'first run: kubectl annotate ipallocation ' + name", ["ipallocation"]],
    ["kubectl get ippools -o name | xargs kubectl delete coordinators", ["ippools", "coordinators"]],
    ["kubectl get ippools.projectcalico.org", ["ippools.projectcalico.org"]],
    ["kubectl get ippools.ipam.vendor.io -l ipam.vendor.io/subnet=blue", []],
    ["kubectl delete ippool.ipam.vendor.io/blue", []],
    ["kubectl explain ippools.ipam.vendor.io.spec", []],
    ["kubectl get berth", []],
    ["kubectl apply -f deploy/crds/ippools.yaml", []],
  ])("%j", (text, found) => {
    expect(ambiguousNames(text)).toEqual(found);
  });

  it("finds them in tables of rights", () => {
    expect(ambiguousRights("| get, list | `ippools`, `subnets/status` | why |\n| `subnets` | part |")).toEqual([
      "ippools",
      "subnets",
    ]);
  });
});

it("commandsOf gives what somebody may type", () => {
  const page =
    "Run `kubectl get\nberth` or `kubectl explain`.\n```sh\nkubectl get pods   # all\n$ kubectl get \\\n  nodes\nls\n```\n`kubectl get ns`";
  expect(commandsOf(page)).toEqual(["kubectl get berth", "kubectl get pods", "kubectl get nodes", "kubectl get ns"]);
});
