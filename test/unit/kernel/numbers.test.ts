import { expect, it } from "vitest";
import { int32At, putUint16, putUint32, uint8At, uint16At, uint32At } from "../../../host/kernel/netlink/numbers.ts";

const VALUES = [
  0, 1, 0x7f, 0x80, 0xff, 0x1234, 0x7fff, 0x8000, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff,
];

it.each([...VALUES, -1, -2, -0x8000_0000])("%s is written and read as a DataView does", (value) => {
  const bytes = new Uint8Array(16).fill(0xaa);
  const copy = bytes.slice();
  const view = new DataView(copy.buffer);
  putUint32(bytes, 3, value);
  view.setUint32(3, value, true);
  putUint16(bytes, 9, value);
  view.setUint16(9, value, true);
  expect(bytes).toEqual(copy);
  expect(uint32At(bytes, 3)).toBe(view.getUint32(3, true));
  expect(int32At(bytes, 3)).toBe(view.getInt32(3, true));
  expect(uint16At(bytes, 9)).toBe(view.getUint16(9, true));
  expect(uint8At(bytes, 9)).toBe(view.getUint8(9));
});
