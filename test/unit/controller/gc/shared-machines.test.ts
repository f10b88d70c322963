import { expect, it } from "vitest";
import { SharedMachines } from "../../../../host/controller/gc/shared-machines.ts";

function find(...sweeps: readonly string[]) {
  const events: string[] = [];
  const shared = new SharedMachines({
    emit: ({ regarding, reason }) => void events.push(`${reason} ${regarding.name}`),
  });
  for (const nodes of sweeps) {
    shared.update(
      nodes.split(" ").map((node) => {
        const [name = "", machine] = node.split("=");
        return { name, machine };
      }),
    );
  }
  return { events, problems: shared.problems };
}

const OF_TWO =
  'Nodes "n1", "n2" report the same systemUUID and machineID: give each machine its own; until then their lost addresses are freed only by a probe';

it.each<[what: string, sweeps: readonly string[], events: readonly string[], problems: readonly string[]]>([
  ["of one name each", ["n1=a n2=b"], [], []],
  ["that report nothing", ["n1 n2"], [], []],
  ["of one name", ["n2=a n1=a n3=b"], ["MachineShared n1", "MachineShared n2"], [OF_TWO]],
  ["of one name, found twice", ["n1=a n2=a", "n2=a n1=a"], ["MachineShared n1", "MachineShared n2"], [OF_TWO]],
  ["of one name, until one is renamed", ["n1=a n2=a", "n1=a n2=b"], ["MachineShared n1", "MachineShared n2"], []],
])("nodes %s", (_what, sweeps, events, problems) => expect(find(...sweeps)).toEqual({ events, problems }));
