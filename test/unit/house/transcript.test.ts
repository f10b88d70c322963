import { expect, it } from "vitest";
import { replay, type Scenario } from "../../world/transcript.ts";

/** A counter: `add 2 times=3` shows it. */
function openCounter(): Scenario {
  let sum = 0;
  return {
    commands: {
      add: (line) => {
        const { times = 1 } = line.values<{ times: number }>("times");
        sum += Number(line.word()) * times;
        return [`${sum}`];
      },
      reset: () => {
        sum = 0;
      },
      show: (line) => line.words(),
    },
  };
}

const replayed = (text: string) => replay("sum.txt", text, openCounter);

it("each block shows what its commands do now, and all else stays as it is", async () => {
  const written =
    "# Sums.\n\n== up\nadd 2; add 2 times=3\n# More.\nreset; add 1\n----\nold\nold\n\n== anew\nadd 5\n----\n";
  const wanted =
    "# Sums.\n\n== up\nadd 2; add 2 times=3\n# More.\nreset; add 1\n----\n2\n8\n1\n\n== anew\nadd 5\n----\n5\n";
  expect(await replayed(written)).toBe(wanted);
  expect(await replayed(wanted)).toBe(wanted);
});

it.each([
  ["an unknown command", "sub 2\n----", 'sum.txt:2: Unknown command "sub"'],
  ["an unknown key", "\nadd 1\n----\n\nadd 2 time=3\n----", "sum.txt:6: add does not know time"],
  ["a key that is set twice", "add 2 times=3 times=3\n----", "sum.txt:2: add has times twice"],
  ["a word too many", "add 2 3\n----", "sum.txt:2: add does not know 3"],
  ["a word too few", "add\n----", "sum.txt:2: add wants one more word"],
  ["commands without a result", "add 2\n\nadd 2\n----", "sum.txt:2: Want ---- below the commands"],
  ["a result without commands", "# None\n----\n2", "sum.txt:2: Want commands above ----"],
  ["an empty line in a result", 'show ""\n----', 'sum.txt:2: show shows an empty line, or two in one: ""'],
])("%s is an error with file and line", async (_, text, message) => {
  await expect(replayed(`== title\n${text}\n`)).rejects.toThrow(message);
});

it("a command before the first scenario is an error", async () => {
  await expect(replayed("# Sums.\n\nadd 2\n----\n")).rejects.toThrow(
    "sum.txt:3: Want == and a title above the first command",
  );
});

it("a scenario is closed when the next one begins, and at the end, also after an error", async () => {
  const closed: string[] = [];
  const open = (): Scenario => ({ commands: {}, close: async () => void closed.push("closed") });
  await replay("a.txt", "== one\n\n== two\n", open);
  await expect(replay("a.txt", "== one\nadd 2\n----\n", open)).rejects.toThrow("a.txt:2: Unknown command");
  expect(closed).toHaveLength(3);
});
