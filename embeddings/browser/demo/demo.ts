/**
 * The address map: a pool of one prefix, and a square for each of its first addresses. A click on one claims or
 * releases it.
 * Effects: the page.
 */
import { Core, formatIp, type Pool, parseIp, parsePrefix } from "berth-core";

const MOST_SQUARES = 512;

function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no #${id}`);
  return found as T;
}

const core = await Core.open();
const said = element("said");
let pool = core.createPool([]);
let squares: readonly HTMLButtonElement[] = [];

/** A pool of the prefix in place of the one before; text that is no prefix is said, and nothing changes. */
function makePool(prefix: string): void {
  let next: Pool;
  try {
    next = core.createPool([prefix]);
  } catch (error) {
    said.textContent = error instanceof Error ? error.message : String(error);
    return;
  }
  pool.drop();
  pool = next;
  squares = firstAddresses(prefix).map(squareOf);
  element("map").replaceChildren(...squares);
  show("");
}

function firstAddresses(prefix: string): string[] {
  const first = parseIp(core.prefixes.first(prefix));
  const length = parsePrefix(prefix)?.length;
  if (first === undefined || length === undefined) return [];
  const { family, value } = first;
  const count = Math.min(MOST_SQUARES, 2 ** ((family === 4 ? 32 : 128) - length));
  return Array.from({ length: count }, (_, index) => formatIp({ family, value: value + BigInt(index) }));
}

function squareOf(address: string): HTMLButtonElement {
  const square = document.createElement("button");
  square.title = address;
  square.ariaLabel = address;
  square.addEventListener("click", () => {
    show(`${address} is ${pool.test(address) ? pool.release(address) : pool.claim(address)}`);
  });
  return square;
}

/** Says what happened, and brings squares and counts up to date. */
function show(text: string): void {
  const { used, free } = pool.counts();
  said.textContent = text;
  element("counts").textContent = `${used} used, ${free} free`;
  const uses = pool.testMany(squares.map(({ title }) => title));
  for (const [index, square] of squares.entries()) square.ariaPressed = String(uses[index]);
}

element("allocate").addEventListener("click", () => {
  const address = pool.allocate("ROUND_ROBIN");
  show(address === undefined ? "No address is free" : `${address} is allocated`);
});
element("shape").addEventListener("submit", (event) => {
  event.preventDefault();
  makePool(element<HTMLInputElement>("prefix").value.trim());
});
makePool(element<HTMLInputElement>("prefix").value);
