/** The story of the cluster, scene by scene: what `npm run demo -- --cluster` tells. */
import type { Narrator } from "../narrator.ts";
import type { Scene } from "./acts.ts";
import { deploymentScene, manifestScene, nodesScene, reservedScene } from "./manifest-scenes.ts";
import { operatorScene } from "./operator-scene.ts";
import { openStage } from "./stage.ts";
import { subnetScene } from "./subnet-scene.ts";
import { awayScene, endScene, identityScene, killScene, settingsScene } from "./trouble-scenes.ts";

const scenes: readonly Scene[] = [
  manifestScene,
  nodesScene,
  deploymentScene,
  killScene,
  reservedScene,
  settingsScene,
  awayScene,
  identityScene,
  subnetScene,
  operatorScene,
  endScene,
];

export async function tellCluster(narrator: Narrator): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const stage = await openStage(stack);
  for (const scene of scenes) await scene(stage, narrator);
}
