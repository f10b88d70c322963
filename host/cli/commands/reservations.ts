/** `berthctl reservations`: addresses that are kept without a pod or for an owner, and their states. */
import { type CommandLine, type OutputFlags, withOutput } from "../command-line.ts";
import { ExitCode } from "../exit-code.ts";
import { listReservations, RESERVATION_TABLE } from "../reservations.ts";
import { type FilterFlags, namespaceOf } from "./allocations.ts";

export function addReservations(cli: CommandLine): void {
  const examples = ["reservations", "reservations -n shop -o wide"];
  withOutput(
    cli.command("reservations", "List the addresses kept without a pod or for an owner, and who has them", examples),
  )
    .option("-n, --namespace <name>", "only for owners in this namespace")
    .option("-A, --all-namespaces", "for all: the default")
    .action((flags: OutputFlags & FilterFlags) =>
      cli.run(flags, async ({ source, out, note }) => {
        const opened = await source();
        const all = listReservations(await opened.reservations(), await opened.allocations({}));
        const namespace = namespaceOf(flags);
        const shown = all.filter((each) => namespace === undefined || each.namespace === namespace);
        await out.list(RESERVATION_TABLE, shown, await opened.scope());
        if (shown.length === 0 && out.hasTitles) note("No address is reserved or retained");
        return ExitCode.Success;
      }),
    );
}
