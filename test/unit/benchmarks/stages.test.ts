import { expect, it } from "vitest";
import { parseSandboxTimes, STAGES, stagesOf } from "../../../benchmarks/nodes/stages.ts";

const UID = "630b8821-3a18-4d2c-85f6-0cf7a102dc6d";
const OTHER = "737c7340-e33a-4deb-9f00-c7fc3c88d26c";
const metadata = (uid: string): string => `&PodSandboxMetadata{Name:web-0,Uid:${uid},Namespace:shop,Attempt:0,}`;
const line = (ms: number, text: string, level = "info", rest = ""): string =>
  `time="2026-01-01T00:00:0${ms / 1_000}Z" level=${level} msg="${text}"${rest}`;

const LOG = [
  line(1_100, `RunPodSandbox for ${metadata(UID)}`),
  line(1_150, `RunPodSandbox for ${metadata(OTHER)}`),
  line(1_300, "begin cni setup", "debug", " podsandboxid=f3b0"),
  line(1_700, String.raw`cni result: {\"Interfaces\":{}}`, "debug", " podsandboxid=f3b0"),
  line(2_200, String.raw`RunPodSandbox for ${metadata(UID)} returns sandbox id \"f3b0\"`),
  line(
    2_300,
    String.raw`CreateContainer within sandbox \"f3b0\" for container &ContainerMetadata{Name:main,Attempt:0,}`,
  ),
  line(
    2_400,
    String.raw`CreateContainer within sandbox \"f3b0\" for &ContainerMetadata{Name:main,Attempt:0,} returns container id \"dce5\"`,
  ),
  line(2_800, String.raw`StartContainer for \"dce5\"`),
  line(2_900, String.raw`StartContainer for \"dce5\" returns successfully`),
  "",
].join("\n");

it("the log of a node's runtime says where the time of a pod's start went, of pods that have started", () => {
  const times = parseSandboxTimes(LOG);
  expect([...times.keys()]).toEqual([UID]);
  const createdMs = Date.parse("2026-01-01T00:00:01Z");
  const sandbox = times.get(UID);
  if (sandbox === undefined) throw new Error("No times");
  const stages = stagesOf({ uid: UID, address: "10.99.16.1", createdMs, readyMs: createdMs + 2_500 }, sandbox);
  expect(stages).toEqual([100, 200, 400, 500, 700, 600]);
  expect(stages).toHaveLength(STAGES.length);
});
