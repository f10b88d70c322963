import io.vendor.berth.core.Core;
import java.nio.file.*;
import java.util.*;
import java.util.stream.Stream;

/** Replays vectors (test/vectors/core/README.md), each on a fresh instance. */
public class Conformance {
  public static void main(String[] files) throws Exception {
    for (String file : files) {
      Core.Wasm raw = new Core.Wasm();
      List<String> lines = Files.readAllLines(Path.of(file));
      int steps = -1; // the last line is none
      String found = "";
      for (int at = 0; at < lines.size(); at++) {
        if (lines.get(at).startsWith("#")) continue;
        found = play(raw, lines.get(at).split(" "));
        if (!found.equals(lines.get(at))) {
          System.err.println(file + ":" + (at + 1) + ": " + found);
          System.exit(1);
        }
        steps++;
      }
      System.out.println(file + ": " + steps + " steps, " + found);
    }
  }

  /** The line as the core has it: with its result, and as much output as the line has. */
  private static String play(Core.Wasm raw, String[] columns) {
    if (columns[0].equals("state")) {
      int bytes = raw.stateBytes();
      long hash = 0xcbf29ce484222325L;
      for (byte octet : raw.memory().readBytes(0, bytes)) hash = (hash ^ octet & 0xff) * 0x100000001b3L;
      return "state - - " + bytes + " " + HexFormat.of().toHexDigits(hash);
    }
    if (!columns[2].equals("-")) raw.write(HexFormat.of().parseHex(columns[2]));
    Stream<String> args = Stream.of(columns[1].split(",")).filter(arg -> !arg.equals("-"));
    columns[3] = "" + raw.call(columns[0], args.mapToInt(Integer::parseInt).toArray());
    byte[] output = raw.read(columns[4].length() / 2);
    if (!columns[4].equals("-")) columns[4] = HexFormat.of().formatHex(output);
    return String.join(" ", columns);
  }
}
