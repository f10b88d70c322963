import { describe, expect, it } from "vitest";
import { formatAlias, parseAlias, type VethOwner } from "../../../host/coordinator/plan/alias.ts";

const OWNER: VethOwner = { owner: "uid-1", containerId: "c1", network: "lan", pod: "shop/web-0" };

describe("the alias of a host's end", () => {
  const rows: [owner: Partial<VethOwner>, text: string][] = [
    [{}, "berth uid-1 c1 lan shop/web-0"],
    [{ pod: "" }, "berth uid-1 c1 lan"],
    [{ pod: "shop/日本" }, "berth uid-1 c1 lan shop/日本"],
  ];
  it.each(rows)("%j is %s, and back", (owner, text) => {
    expect(formatAlias({ ...OWNER, ...owner })).toBe(text);
    expect(parseAlias(text)).toEqual({ ...OWNER, ...owner });
  });

  it("names the same container whatever the pod is called", () => {
    const alias = formatAlias({ ...OWNER, owner: "x c-other lan shop/other", pod: "a b\tc" });
    expect(alias).toBe("berth x_c-other_lan_shop/other c1 lan a_b_c");
    expect(parseAlias(alias)).toMatchObject({ containerId: "c1", network: "lan" });
  });

  it("loses its end when it is too long, and no half of a character stays", () => {
    const alias = formatAlias({ ...OWNER, pod: `shop/${"日".repeat(100)}` });
    expect(Buffer.byteLength(alias)).toBeLessThanOrEqual(255);
    expect(alias).toMatch(/^berth uid-1 c1 lan shop\/日+$/);
    expect(parseAlias(alias)).toMatchObject({ containerId: "c1", network: "lan" });
  });

  it("that is so long that fields are lost has no owner", () => {
    expect(parseAlias(formatAlias({ ...OWNER, owner: "u".repeat(300) }))).toBe(undefined);
  });

  it.each(["", "berth", "berth a b", "flannel a b c"])("of another link has no owner: %s", (alias) => {
    expect(parseAlias(alias)).toBe(undefined);
  });
});
