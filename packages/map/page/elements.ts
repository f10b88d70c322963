/** Elements of the page. Texts become text nodes, never markup: names come from tenants. */

type Content = Node | string | undefined;

/** Returns the element of the page with this ID. */
export function find<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no element "${id}"`);
  return found as T;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  ...contents: readonly Content[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  element.append(...contents.filter((content) => content !== undefined));
  return element;
}

/** Returns a button that looks like a link. */
export function makeLink(text: string, onClick: () => void): HTMLButtonElement {
  const button = make("button", text);
  button.type = "button";
  button.className = "link";
  button.addEventListener("click", onClick);
  return button;
}

/** Returns a list of names and values; those without a value are left out. */
export function makeFacts(facts: readonly (readonly [name: string, value: Content])[]): HTMLDListElement {
  const known = facts.filter(([, value]) => value !== undefined && value !== "");
  return make("dl", ...known.flatMap(([name, value]) => [make("dt", name), make("dd", value)]));
}

export function makeList(items: readonly Content[]): HTMLUListElement {
  const list = make("ul", ...items.map((item) => make("li", item)));
  list.className = "plain";
  return list;
}

/** Returns a table with a caption; the first cell of each row is its heading. */
export function fillTable(
  table: HTMLTableElement,
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly Content[])[],
): void {
  const head = make("tr", ...heads.map((text) => scoped(make("th", text), "col")));
  const body = rows.map(([first, ...others]) =>
    make("tr", scoped(make("th", first), "row"), ...others.map((cell, at) => headed(make("td", cell), heads[at + 1]))),
  );
  table.replaceChildren(make("caption", caption), make("thead", head), make("tbody", ...body));
}

/** Where a row does not fit beside its heads, each cell says its own, and those that say nothing are left out. */
function headed(cell: HTMLTableCellElement, head = ""): HTMLTableCellElement {
  if (cell.textContent !== "" && cell.textContent !== "0") cell.dataset.head = head;
  return cell;
}

function scoped(cell: HTMLTableCellElement, scope: "col" | "row"): HTMLTableCellElement {
  cell.scope = scope;
  return cell;
}
