package io.vendor.berth.core.tools;

import com.google.gson.Gson;
import io.vendor.berth.core.Abi;
import io.vendor.berth.core.Core;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Replays the vectors of a folder, each on a fresh instance, and compares every result, every
 * output and at the end the whole memory. One line per vector; at the first difference one on
 * stderr, and exit code 1.
 */
public final class Conformance {
  private static final long FNV_OFFSET = 0xcbf29ce484222325L;
  private static final long FNV_PRIME = 0x100000001b3L;

  private record Vector(List<Step> steps, State state) {}

  private record Step(String call, int[] args, String input, int result, String output) {}

  private record State(int bytes, String fnv1a64) {}

  /** A difference between what a vector wants and what the core gives. */
  private static final class Difference extends Exception {
    private static final long serialVersionUID = 1L;

    Difference(String message) {
      super(message);
    }
  }

  private Conformance() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 1) {
      System.err.println("Usage: Conformance FOLDER");
      System.exit(1);
    }
    try {
      for (Path file : vectorsIn(Path.of(arguments[0]))) System.out.println(replay(file));
    } catch (Difference difference) {
      System.err.println(difference.getMessage());
      System.exit(1);
    }
  }

  private static List<Path> vectorsIn(Path folder) throws IOException, Difference {
    try (Stream<Path> entries = Files.list(folder)) {
      List<Path> files =
          entries.filter(path -> path.toString().endsWith(".json")).sorted().toList();
      if (files.isEmpty()) throw new Difference("No vectors in " + folder);
      return files;
    }
  }

  private static String replay(Path file) throws Exception {
    Vector vector = new Gson().fromJson(Files.readString(file), Vector.class);
    String name = file.getFileName().toString().replaceFirst("\\.json$", "");
    Abi abi = Core.openRaw();
    for (int index = 0; index < vector.steps().size(); index++) {
      Step step = vector.steps().get(index);
      try {
        play(abi, step);
      } catch (Difference difference) {
        String call = step.call() + "(" + join(step.args()) + ")";
        throw new Difference(
            name + ": step " + index + ", " + call + ": " + difference.getMessage());
      }
    }
    byte[] state = stateOf(abi, name, vector.state());
    return String.format(
        "%s: %d steps, %d bytes, sha256 %s",
        name, vector.steps().size(), state.length, sha256(state));
  }

  private static void play(Abi abi, Step step) throws ReflectiveOperationException, Difference {
    if (step.input() != null) {
      byte[] input = HexFormat.of().parseHex(step.input());
      abi.writeMemory(abi.exchange(input.length), input);
    }
    int result = call(abi, step.call(), step.args());
    if (result != step.result()) {
      throw new Difference("result " + result + ", wanted " + step.result());
    }
    if (step.output() != null) {
      byte[] output = abi.readMemory(abi.exchange(0), step.output().length() / 2);
      String found = HexFormat.of().formatHex(output);
      if (!found.equals(step.output())) {
        throw new Difference("output " + found + ", wanted " + step.output());
      }
    }
  }

  /** Calls the method of the raw layer that stands for an export: pool_create is poolCreate. */
  private static int call(Abi abi, String export, int[] arguments)
      throws ReflectiveOperationException {
    String[] words = export.split("_");
    String name =
        words[0]
            + Arrays.stream(words, 1, words.length)
                .map(word -> Character.toUpperCase(word.charAt(0)) + word.substring(1))
                .collect(Collectors.joining());
    Class<?>[] types = new Class<?>[arguments.length];
    Arrays.fill(types, int.class);
    Method method = Abi.class.getMethod(name, types);
    try {
      return (int) method.invoke(abi, Arrays.stream(arguments).boxed().toArray());
    } catch (InvocationTargetException failure) {
      throw new IllegalStateException(export + " failed", failure.getCause());
    }
  }

  private static byte[] stateOf(Abi abi, String name, State wanted) throws Difference {
    int bytes = abi.stateBytes();
    if (bytes != wanted.bytes()) {
      throw new Difference(name + ": state: " + bytes + " bytes, wanted " + wanted.bytes());
    }
    byte[] state = abi.readMemory(0, bytes);
    String hash = String.format("%016x", fnv1a64(state));
    if (!hash.equals(wanted.fnv1a64())) {
      throw new Difference(name + ": state: fnv1a64 " + hash + ", wanted " + wanted.fnv1a64());
    }
    return state;
  }

  private static long fnv1a64(byte[] bytes) {
    long hash = FNV_OFFSET;
    for (byte octet : bytes) hash = (hash ^ (octet & 0xff)) * FNV_PRIME;
    return hash;
  }

  private static String sha256(byte[] bytes) throws NoSuchAlgorithmException {
    return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
  }

  private static String join(int[] arguments) {
    return Arrays.stream(arguments).mapToObj(String::valueOf).collect(Collectors.joining(", "));
  }
}
