/** Calico's selectors, as far as they are conjunctions, as label selectors of Kubernetes. */

/** One condition of a label selector. */
interface Requirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values?: readonly string[];
}

const TOKEN = /\s*(?:(&&|\|\||==|!=|!|\(|\)|\{|\}|,)|"([^"]*)"|'([^']*)'|([A-Za-z0-9_./-]+))/y;

interface Token {
  readonly symbol?: string | undefined;
  readonly text?: string | undefined;
  readonly word?: string | undefined;
}

function tokensOf(selector: string): Token[] | undefined {
  const tokens: Token[] = [];
  const trimmed = selector.trimEnd();
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < trimmed.length) {
    const found = TOKEN.exec(trimmed);
    if (found === null) return undefined;
    const [, symbol, double, single, word] = found;
    tokens.push({ symbol, text: double ?? single, word });
  }
  return tokens;
}

/**
 * Returns the conditions, all of which must hold; undefined if a label selector cannot express the text, or it is
 * malformed.
 */
export function parseCalicoSelector(selector: string): readonly Requirement[] | undefined {
  const tokens = tokensOf(selector);
  if (tokens === undefined) return undefined;
  let at = 0;
  const take = (symbol: string): boolean => {
    if (tokens[at]?.symbol !== symbol) return false;
    at++;
    return true;
  };
  const takeWord = (): string | undefined => {
    const { word } = tokens[at] ?? {};
    if (word !== undefined) at++;
    return word;
  };
  const takeText = (): string | undefined => {
    const { text } = tokens[at] ?? {};
    if (text !== undefined) at++;
    return text;
  };
  const values = (): string[] | undefined => {
    if (!take("{")) return undefined;
    const list: string[] = [];
    while (!take("}")) {
      const text = takeText();
      if (text === undefined) return undefined;
      list.push(text);
      take(",");
    }
    return list.length === 0 ? undefined : list;
  };
  const call = (key: "has" | "all", isNegated: boolean): readonly Requirement[] | undefined => {
    if (!take("(")) return undefined;
    if (key === "all") return take(")") && !isNegated ? [] : undefined;
    const label = takeWord();
    if (label === undefined || !take(")")) return undefined;
    return [{ key: label, operator: isNegated ? "DoesNotExist" : "Exists" }];
  };
  const term = (): readonly Requirement[] | undefined => {
    const isNegated = take("!");
    const key = takeWord();
    if (key === "has" || key === "all") return call(key, isNegated);
    if (key === undefined || isNegated) return undefined;
    for (const [symbol, operator] of [["==", "In"] as const, ["!=", "NotIn"] as const]) {
      if (!take(symbol)) continue;
      const text = takeText();
      return text === undefined ? undefined : [{ key, operator, values: [text] }];
    }
    const word = takeWord();
    const isNot = word === "not";
    if ((isNot ? takeWord() : word) !== "in") return undefined;
    const list = values();
    return list && [{ key, operator: isNot ? "NotIn" : "In", values: list }];
  };
  const conjunction = (): readonly Requirement[] | undefined => {
    const found: Requirement[] = [];
    do {
      const isGroup = take("(");
      const inner = isGroup ? conjunction() : term();
      if (inner === undefined || (isGroup && !take(")"))) return undefined;
      found.push(...inner);
    } while (take("&&"));
    return found;
  };
  if (tokens.length === 0) return [];
  const found = conjunction();
  return at === tokens.length ? found : undefined;
}
