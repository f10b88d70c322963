/** Which attachments are repaired, and the effect of answers and errors. */
import { expect, it } from "vitest";
import { CoordinatedAttachments } from "../../../../host/agent/coordinator/attachments.ts";
import { repairDrift } from "../../../../host/agent/operate/read-drift.ts";
import { CniError, ErrorCode } from "../../../../host/cni/error.ts";
import type { AttachRequest } from "../../../../host/cni/request.ts";
import { ApplyError } from "../../../../host/kernel/apply.ts";
import { NetnsError } from "../../../../host/kernel/netns.ts";
import type { Operation } from "../../../../host/plan/operation.ts";

const NIC = { namespace: "shop", pod: "c1", interface: "eth0", netns: "/run/netns/c1" };
const UP: Operation = { kind: "set-link", place: "pod", link: "veth0", from: { up: false }, to: { up: true } };

const requestOf = (containerId: string): AttachRequest =>
  ({
    ...{ command: "ADD", containerId, ifName: "eth0", netns: `/run/netns/${containerId}` },
    args: new Map(Object.entries({ K8S_POD_NAMESPACE: "shop", K8S_POD_NAME: containerId })),
  }) as unknown as AttachRequest;

function repair(answer: (containerId: string) => readonly Operation[]) {
  const attachments = new CoordinatedAttachments();
  for (const containerId of ["c1", "c2"]) attachments.setRequest(requestOf(containerId));
  const asked: string[] = [];
  const deps = {
    coordinator: {
      attachments,
      repair: async ({ containerId, command }: AttachRequest, isServed: boolean) => {
        asked.push(`${command} ${containerId} ${isServed}`);
        return answer(containerId);
      },
      compare: () => expect.unreachable(),
      observeNode: () => expect.unreachable(),
    },
    networks: { pluginsOf: () => [], nicsOf: () => [] },
    identifier: { find: async () => undefined },
  };
  return repairDrift(deps as never, { rows: [], nowMs: 0 }).then((done) => ({ ...done, asked }));
}

it("repairs all attachments as a CHECK would compare them, and lists its changes", async () => {
  expect(await repair((containerId) => (containerId === "c1" ? [UP] : []))).toEqual({
    asked: ["CHECK c1 true", "CHECK c2 true"],
    repaired: [{ ...NIC, operations: ["pod: ip link set veth0 up"] }],
    findings: [],
  });
});

const text = "interface eth0 in /run/netns/c1 is not restored: ";
const UP_FAILED = new ApplyError(UP, "pod: ip link set veth0 up", new Error("EPERM"), []);
it.each<[what: string, error: Error, found: string[]]>([
  ["nothing of an attachment whose namespace is gone", new NetnsError("open", "/run/netns/c1", 2), []],
  ["the text of a refusal", new CniError(ErrorCode.InterfaceRefused, "It is foreign"), [`${text}It is foreign`]],
  ["what the kernel refused", UP_FAILED, [`${text}"pod: ip link set veth0 up" failed: EPERM`]],
])("reports %s, and goes on", async (_, error, found) => {
  const done = await repair((containerId) => {
    if (containerId === "c1") throw error;
    return [UP];
  });
  expect(done.findings.map((finding) => finding.text)).toEqual(found);
  expect(done.repaired.map(({ pod }) => pod)).toEqual(["c2"]);
});

it("does not hide an internal error", async () => {
  const broken = repair(() => {
    throw new TypeError("no");
  });
  await expect(broken).rejects.toThrow(TypeError);
});
