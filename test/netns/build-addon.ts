/** Before the first test of this kind: the addon is newer than its sources. */
import { execFileSync } from "node:child_process";

export default function buildAddon(): void {
  execFileSync("native/build.sh", ["addon"], { stdio: "inherit" });
}
