import { expect, it } from "vitest";
import { DARK, LIGHT } from "../../../web/colours.ts";
import { KINDS } from "../../../web/map-model.ts";

/** The relative luminance of a colour (WCAG 2.2): 0 to 1. */
function luminance(colour: number): number {
  const [red = 0, green = 0, blue = 0] = [16, 8, 0].map((shift) => {
    const part = ((colour >>> shift) & 255) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: number, other: number): number {
  const [low, high] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return ((high ?? 0) + 0.05) / ((low ?? 0) + 0.05);
}

it.each([
  ["light", LIGHT],
  ["dark", DARK],
] as const)("%s: what is free is told from what is outside, and both from what is bound", (_, { ground }) => {
  const of = (kind: (typeof KINDS)[number]) => ground[KINDS.indexOf(kind)] ?? 0;
  expect(contrast(of("Free"), of("Outside"))).toBeGreaterThan(1.7);
  expect(contrast(of("Elsewhere"), of("Free"))).toBeGreaterThan(1.4);
  expect(contrast(of("Elsewhere"), of("Outside"))).toBeGreaterThan(1.2);
  for (const kind of ["Free", "Elsewhere", "Outside"] as const)
    expect(contrast(of(kind), of("Bound")), kind).toBeGreaterThan(1.9);
});
