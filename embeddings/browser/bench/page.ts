/**
 * The bench program in a browser's page.
 * Effects: requests to the server of the page; the page.
 */
import { report } from "../page.ts";
import { measure, type Shape } from "./forms.ts";

await report(async (say) => {
  const shapes = (await (await fetch("/given/shapes.json")).json()) as Shape[];
  const readSnapshot = async ({ snapshot }: Shape) =>
    new Uint8Array(await (await fetch(`/given/${snapshot}`)).arrayBuffer());
  await measure(shapes, readSnapshot, (figure) => say(JSON.stringify(figure)));
  return undefined;
});
