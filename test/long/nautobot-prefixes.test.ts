/** Prefixes as blocks on a real Nautobot, with the rights that the documents ask for. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNautobot } from "../lab/nautobot.ts";
import { suite } from "../world/prefix-suite.ts";

suite("Nautobot", async () => {
  const nautobot = await startNautobot();
  const directory = await mkdtemp(join(tmpdir(), "berth-token-"));
  const tokenFile = join(directory, "token");
  await writeFile(tokenFile, nautobot.tokens.berth);
  const end = async () => {
    await nautobot[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  };
  return { product: "nautobot", url: nautobot.url, tokenFile, [Symbol.asyncDispose]: end };
});
