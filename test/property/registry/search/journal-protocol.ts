/** Berth's protocol for the search: its agent and its controller. */
import { mayLeak } from "../../../../host/ipam/leak.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import type { IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { answered, Draft, type JournalOptions, type JournalTurn, workloadOf } from "./journal-agent.ts";
import { controlTurns } from "./journal-controller.ts";
import { keyOfMemory, keyOfRow, type Memory, startMemory } from "./journal-memory.ts";
import { keptSpec, keyOfSpec } from "./journal-object.ts";
import type { Agent, Limit, Place, Protocol } from "./protocol.ts";

type Spec = IpAllocationSpec;

/** The product's protocol. */
export function journalProtocol(options: JournalOptions): Protocol<Allocation, Memory, Spec> {
  const turn = async (
    agent: Agent<Allocation, Memory>,
    place: Place<Spec>,
    { label, waitsFor, run }: { label: string; waitsFor?: Limit; run: (draft: Draft) => Promise<void> },
  ): Promise<JournalTurn> => {
    const draft = new Draft(agent, place, options);
    draft.waitsFor = waitsFor;
    await run(draft);
    return draft.turn(label, agent.memory);
  };
  return {
    start: startMemory,
    add: async (agent, { pod, container }, place) => {
      const { isReconciled, task, queued } = agent.memory;
      if (!isReconciled || task?.claim !== undefined || queued !== undefined) return undefined;
      return turn(agent, place, { label: `ADD ${pod.uid}`, run: (draft) => draft.add(pod, container) });
    },
    release: (agent, container, place) =>
      turn(agent, place, {
        label: `DEL ${container}`,
        run: async (draft) => {
          if (draft.row?.state !== "Bound" || draft.row.containerId !== container) return;
          draft.cool(draft.row);
          await draft.sync();
        },
      }),
    own: async (agent, place) => {
      const { row, memory } = agent;
      const { task } = memory;
      const turns: Promise<JournalTurn>[] = [];
      const offer = (label: string, run: (draft: Draft) => Promise<void>, waitsFor?: Limit): void => {
        turns.push(turn(agent, place, { label, run, ...(waitsFor === undefined ? {} : { waitsFor }) }));
      };
      if (memory.looksAgain)
        offer(
          "looks at the name again",
          async (draft) => {
            draft.change({ looksAgain: false });
            if (draft.row === undefined) draft.change({ isDue: true });
            else await draft.sync();
          },
          "lateWrite",
        );
      if (memory.attaching !== undefined)
        offer("the NIC counts as attached", async (draft) => draft.change({ attaching: undefined }), "comingUp");
      if (task !== undefined) return Promise.all(turns);
      if (row?.state === "Cooling" && row.freeAtMs === 1)
        offer(
          "the cooldown is over",
          async (draft) => {
            draft.row = { ...row, freeAtMs: 0 };
            await draft.sync();
          },
          "cooldown",
        );
      if (memory.isDue || !memory.isReconciled) offer("compares", (draft) => draft.compare());
      if (memory.isBacklogged) offer("syncs", (draft) => draft.sync());
      if (row !== undefined && mayLeak(row) && place.uidOf(row.pod) !== row.owner)
        offer(`sweeps, without pod ${row.owner}`, (draft) => draft.sweep(row));
      if (row?.state === "Quarantined")
        offer("probes", async (draft) => {
          if (!place.isSilent()) return;
          draft.cool(row, true);
          await draft.sync();
        });
      return Promise.all(turns);
    },
    answered: (agent, answer, place) => turn(agent, place, { label: "", run: (draft) => answered(draft, answer) }),
    told: (memory) => ({ ...memory, isDue: true }),
    control: controlTurns,
    view: ({ state, holders, workload }) => ({
      ...{ state, holders: holders.map(({ podUid }) => podUid) },
      isRetained: workload !== undefined && workload.kind !== "Service" && state !== "Cooling",
      isClaimed: workload?.kind === "Service" && state === "Kept",
    }),
    kept: (member) => keptSpec(workloadOf(member, options.isMachine)),
    holderOf: ({ state, owner }) => (state === "Bound" ? owner : undefined),
    key: { row: keyOfRow, memory: keyOfMemory, spec: keyOfSpec },
  };
}
