/**
 * Compares the wire, the kernel and the records of a segment's addresses. Pure: rounds of eyes.c and writes to the
 * registry in, in the order of their times; findings out.
 *
 *   duplicate    two MACs answer for one address in one round
 *   unrecorded   a machine answers for an address, or has it on a NIC, that no record has or a released one (Cooling)
 *   foreign      the same of an address whose record is another pod's
 *   silent       a pod's NIC that is up has its address, and does not answer for it
 *   lost         a pod's NIC is there without the address that is recorded for it
 *
 * The protocol allows some time: a main plugin's DEL calls IPAM before it removes the link, and a record that was
 * deleted by hand is made again. Only `duplicate` is allowed at no time.
 */

/** A line of eyes.c. */
export interface Round {
  readonly atMs: number;
  readonly cpuMs: number;
  readonly asked: readonly string[];
  readonly answers: readonly (readonly [address: string, mac: string])[];
  /** Once for each address; `""`: the NIC has none. */
  readonly nics: readonly (readonly [netns: string, link: string, mac: string, address: string, isUp: 0 | 1])[];
}

/** The registry's record of an address. */
export interface AddressRecord {
  readonly state: string;
  /** UIDs of pods. */
  readonly holders: readonly string[];
  /** For the report. */
  readonly text: string;
}

export interface CheckerOptions {
  /** Time for which a machine may have an address that is not recorded for it, or a pod be without its own. */
  readonly graceMs: number;
  /** The UID of a namespace's pod; undefined: unknown, then it is whose record is there when its NIC is first seen. */
  podOf?(netns: string): string | undefined;
}

export interface Finding {
  readonly kind: "duplicate" | "unrecorded" | "foreign" | "silent" | "lost";
  readonly address: string;
  readonly atMs: number;
  /** MACs, namespaces and records side by side, with earlier events, in seconds after the first one. */
  readonly text: string;
}

/** A NIC, or a machine behind one, with an address. */
interface Machine {
  readonly address: string;
  readonly mac: string;
  place: string;
  netns: string | undefined;
  /** UIDs of the pods that it may be. */
  owners: readonly string[] | undefined;
  seenMs: number;
  readonly sinceMs: Partial<Record<Finding["kind"], number>>;
}

/**
 * Longest gap in the questions about an address that is asked in each round; others have their turn every two
 * seconds.
 */
const GAP_MS = 3_000;
/**
 * Time for which a NIC may be silent: the links of a new one need a moment, and questions are not repeated in a
 * round.
 */
const SILENT_MS = 3_000;
/** So many of an address's last events are reported. */
const EVENTS = 12;

export class SegmentChecker {
  readonly #options: CheckerOptions;
  readonly #records = new Map<string, AddressRecord>();
  /** By address and MAC. */
  readonly #machines = new Map<string, Machine>();
  /** Addresses of pools, and all that ever had a record: others are none of Berth's. */
  readonly #known = new Set<string>();
  readonly #events = new Map<string, string[]>();
  readonly #found = new Set<string>();
  #firstMs: number | undefined;
  #isHeld = false;
  #findings: Finding[] = [];

  constructor(options: CheckerOptions) {
    this.#options = options;
  }

  /** Returns the findings since the last call. */
  take(): readonly Finding[] {
    return this.#findings.splice(0);
  }

  /** Nothing can be recorded meanwhile. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
  }

  /** A write; undefined: deleted. */
  write(atMs: number, address: string, record: AddressRecord | undefined): void {
    const before = describeRecord(this.#records.get(address));
    if (record === undefined) this.#records.delete(address);
    else this.#records.set(address, record);
    this.#known.add(address);
    if (before === describeRecord(record)) return;
    this.#note(atMs, address, `record: ${describeRecord(record)}`);
  }

  round(round: Round): void {
    for (const address of round.asked) this.#known.add(address);
    const seen = this.#look(round);
    const answering = new Set(round.answers.map(([address, mac]) => keyOf(address, mac)));
    for (const machine of seen) this.#check(machine, round.atMs);
    for (const machine of seen)
      if (this.#isMute(machine, round, answering)) this.#endure("silent", machine, round.atMs, SILENT_MS);
    this.#findDuplicates(round);
    for (const machine of [...this.#machines.values()]) if (machine.seenMs < round.atMs) this.#miss(machine, round);
  }

  /** The machines of this round, each once. */
  #look({ atMs, answers, nics }: Round): Set<Machine> {
    const seen = new Set<Machine>();
    const places = new Map(nics.map(([netns, link, mac]) => [mac, { netns, place: `${netns} ${link}` }]));
    const see = (address: string, mac: string, verb: string): void => {
      if (!this.#known.has(address)) return;
      const { netns, place = "unknown" } = places.get(mac) ?? {};
      let machine = this.#machines.get(keyOf(address, mac));
      if (machine === undefined) {
        machine = { address, mac, place, netns, owners: undefined, seenMs: atMs, sinceMs: {} };
        this.#machines.set(keyOf(address, mac), machine);
        this.#note(atMs, address, `${mac} (${place}) ${verb}`);
      }
      if (netns !== undefined) Object.assign(machine, { netns, place });
      machine.seenMs = atMs;
      seen.add(machine);
    };
    for (const [, , mac, address] of nics) see(address, mac, "has it");
    for (const [address, mac] of answers) see(address, mac, "answers");
    return seen;
  }

  #check(machine: Machine, atMs: number): void {
    const record = this.#records.get(machine.address);
    const known = machine.netns === undefined ? undefined : this.#options.podOf?.(machine.netns);
    if (known !== undefined) machine.owners = [known];
    else if (record?.state === "Bound") machine.owners ??= record.holders;
    const wrong = wrongOf(record, machine);
    for (const kind of ["unrecorded", "foreign"] as const) {
      if (kind !== wrong) delete machine.sinceMs[kind];
      else this.#endure(kind, machine, atMs, this.#options.graceMs);
    }
    delete machine.sinceMs.lost;
    if (wrong !== undefined) delete machine.sinceMs.silent;
  }

  /** Asked, and not heard, though its NIC is up and recorded. */
  #isMute(machine: Machine, { asked, nics }: Round, answering: ReadonlySet<string>): boolean {
    const { address, mac } = machine;
    const isUp = nics.some(([, , itsMac, its, up]) => itsMac === mac && its === address && up === 1);
    const record = this.#records.get(address);
    const isOwn = record?.state === "Bound" && wrongOf(record, machine) === undefined;
    if (isUp && isOwn && asked.includes(address) && !answering.has(keyOf(address, mac))) return true;
    delete machine.sinceMs.silent;
    return false;
  }

  /** A pod that ends takes its NIC with it. */
  #miss(machine: Machine, { atMs, nics }: Round): void {
    const { address, mac, netns, owners } = machine;
    const record = this.#records.get(address);
    const isThere = nics.some(([other, , itsMac]) => other === netns && itsMac === mac);
    const isMoved = nics.some(([other, , , its]) => other === netns && its === address);
    const isOwn = record?.state === "Bound" && owners?.some((uid) => record.holders.includes(uid)) === true;
    const isLost = isThere && isOwn && !isMoved;
    if (isLost) this.#endure("lost", machine, atMs, this.#options.graceMs);
    if (isLost || atMs - machine.seenMs < GAP_MS) return;
    this.#machines.delete(keyOf(address, mac));
    this.#note(atMs, address, `${mac} (${machine.place}) is gone`);
  }

  #findDuplicates({ atMs, answers }: Round): void {
    for (const [address, all] of Map.groupBy(answers, ([address]) => address)) {
      const macs = [...new Set(all.map(([, mac]) => mac))].sort();
      // Of two NICs of a pod on one segment each may answer for the other.
      const machines = new Set(macs.map((mac) => this.#netnsOf(mac) ?? mac));
      const key = `duplicate ${address} ${macs.join()}`;
      if (machines.size < 2 || this.#found.has(key)) continue;
      this.#found.add(key);
      this.#report("duplicate", address, atMs, `${macs.map((mac) => this.#placed(address, mac)).join(" and ")} answer`);
    }
  }

  /** Reports a machine once that is so for longer than it may be. */
  #endure(kind: Finding["kind"], machine: Machine, atMs: number, limitMs: number): void {
    const { address, mac, sinceMs } = machine;
    if (this.#isHeld && kind !== "silent") sinceMs[kind] = atMs;
    sinceMs[kind] ??= atMs;
    const key = `${kind} ${keyOf(address, mac)}`;
    if (atMs - sinceMs[kind] < limitMs || this.#found.has(key)) return;
    this.#found.add(key);
    this.#report(kind, address, atMs, `${this.#placed(address, mac)} for ${seconds(atMs - sinceMs[kind])}`);
  }

  #netnsOf(mac: string): string | undefined {
    return this.#machines.values().find((machine) => machine.mac === mac)?.netns;
  }

  #placed(address: string, mac: string): string {
    return `${mac} (${this.#machines.get(keyOf(address, mac))?.place ?? "unknown"})`;
  }

  #report(kind: Finding["kind"], address: string, atMs: number, what: string): void {
    const at = seconds(atMs - (this.#firstMs ?? atMs));
    const head = `${kind}: ${address} at ${at}: ${what}; record: ${describeRecord(this.#records.get(address))}`;
    const text = [head, ...(this.#events.get(address) ?? [])].join("\n    ");
    this.#findings.push({ kind, address, atMs, text });
  }

  #note(atMs: number, address: string, what: string): void {
    this.#firstMs ??= atMs;
    const events = this.#events.get(address) ?? [];
    events.push(`${seconds(atMs - this.#firstMs)} ${what}`);
    this.#events.set(address, events.slice(-EVENTS));
  }
}

/** A quarantine exists because a machine answers; no other pod gets a Kept address. */
function wrongOf(record: AddressRecord | undefined, { owners }: Machine): "unrecorded" | "foreign" | undefined {
  if (record === undefined || record.state === "Cooling") return "unrecorded";
  if (record.state !== "Bound" || owners === undefined) return undefined;
  return owners.some((uid) => record.holders.includes(uid)) ? undefined : "foreign";
}

function keyOf(address: string, mac: string): string {
  return `${address} ${mac}`;
}

function describeRecord(record: AddressRecord | undefined): string {
  return record === undefined ? "none" : `${record.state} ${record.text}`;
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1_000).toFixed(1)} s`;
}
