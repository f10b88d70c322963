/** The results of earlier checks, by name of the allocation. */
import { listSome } from "../../lib/describe.ts";

/** Most addresses that a sentence or an event of the collection names. */
export const MAX_NAMED_ADDRESSES = 8;

export class CheckHistory {
  /** Nodes that were chosen to probe. */
  readonly asked = new Map<string, Set<string>>();
  /** The version that agents were told of. */
  readonly told = new Map<string, string>();
  /** Addresses that no ready node can probe. */
  readonly withoutProber = new Set<string>();
  /** Kinds of owners that could not be looked up. */
  readonly unknownOwner = new Map<string, string>();
  /** Why the last check failed. */
  readonly failed = new Map<string, string>();

  /** The obstacles of the last check may be gone. */
  forgetObstacles(name: string): void {
    for (const known of [this.withoutProber, this.unknownOwner, this.failed]) known.delete(name);
  }

  forget(name: string): void {
    for (const known of [this.asked, this.told]) known.delete(name);
    this.forgetObstacles(name);
  }

  keepOnly(names: ReadonlySet<string>): void {
    for (const known of [this.asked, this.told, this.withoutProber, this.unknownOwner, this.failed])
      for (const name of known.keys()) if (!names.has(name)) known.delete(name);
  }

  /** Sentences without a full stop. */
  get problems(): readonly string[] {
    const away = [...this.withoutProber].sort();
    const kinds = Map.groupBy(this.unknownOwner.values(), (kind) => kind);
    const [why] = this.failed.values();
    return [
      ...(away.length === 0 ? [] : [`No ready node can probe ${listSome(away, MAX_NAMED_ADDRESSES)} of lost nodes`]),
      ...[...kinds].map(
        ([kind, { length }]) =>
          `Whether owners of the kind ${kind} still want their retained addresses is unknown: they stay unless they are deleted (${length})`,
      ),
      ...(why === undefined ? [] : [`${this.failed.size} of the addresses cannot be checked or collected now: ${why}`]),
    ];
  }
}
