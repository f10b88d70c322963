package io.vendor.berth.core.tools;

import com.dylibso.chicory.runtime.Machine;
import com.google.gson.Gson;
import io.vendor.berth.core.Abi;
import io.vendor.berth.core.Abi.Policy;
import io.vendor.berth.core.AddressRange;
import io.vendor.berth.core.Core;
import io.vendor.berth.core.LoadResult;
import io.vendor.berth.core.Pool;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

/**
 * Times one address taken and given back, in the shapes of a folder's shapes.json. One line of JSON
 * per figure: nanoseconds per pair, per address in batches, per call for a call that does nothing.
 */
public final class Bench {
  private static final long WARM_UP_NS = 200_000_000;
  private static final long WARM_UP_MAX_NS = 2_000_000_000;
  private static final long REST_NS = 100_000_000;
  private static final long SAMPLE_NS = 30_000_000;
  private static final int SAMPLES = 9;

  private record Shape(String name, String[][] ranges, String snapshot, int batch) {}

  private record Figure(String runtime, String shape, String form, Double ns, String text) {}

  /** Does a form so many times; the sum of its results, so that none of them is needless. */
  private interface Form {
    long repeat(int times);
  }

  private static long sum;

  private Bench() {}

  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]);
    print("", "version", null, "Java " + Runtime.version() + ", Chicory " + chicoryVersion());
    try (Core core = Core.open()) {
      Abi abi = core.abi();
      Form call = times -> call(abi, times);
      warmUp(call);
      print("", "call", time(call), null);
    }
    String shapes = Files.readString(folder.resolve("shapes.json"));
    for (Shape shape : new Gson().fromJson(shapes, Shape[].class)) {
      measure(shape, Files.readAllBytes(folder.resolve(shape.snapshot())));
    }
    if (sum == 0) throw new IllegalStateException("Nothing was done");
  }

  private static String chicoryVersion() throws IOException {
    Properties properties = new Properties();
    String path = "/META-INF/maven/com.dylibso.chicory/runtime/pom.properties";
    try (InputStream stream = Machine.class.getResourceAsStream(path)) {
      properties.load(stream);
    }
    return properties.getProperty("version");
  }

  private static void measure(Shape shape, byte[] snapshot) {
    List<AddressRange> ranges =
        Arrays.stream(shape.ranges())
            .map(ends -> AddressRange.parse(ends[0] + "-" + ends[1]))
            .toList();
    try (Core core = Core.open();
        Pool pool = core.createPool(ranges, List.of())) {
      if (pool.load(snapshot) != LoadResult.LOADED) {
        throw new IllegalArgumentException(shape.snapshot() + " is no snapshot of " + shape.name());
      }
      Abi abi = core.abi();
      int handle = pool.handle();
      Form one = times -> one(pool, times);
      Form raw = times -> raw(abi, handle, times);
      Form ordinal = times -> ordinal(abi, handle, times);
      Form batch = times -> batch(pool, shape.batch(), times);
      // Code that several forms share is compiled anew for each: all of them run before one counts.
      for (Form form : List.of(one, raw, ordinal, batch)) warmUp(form);
      print(shape.name(), "one", time(one), null);
      print(shape.name(), "raw", time(raw), null);
      print(shape.name(), "ordinal", time(ordinal), null);
      print(shape.name(), "batch", time(batch) / shape.batch(), null);
    }
  }

  private static long call(Abi abi, int times) {
    long total = 1;
    for (int time = 0; time < times; time++) total += abi.liveObjects();
    return total;
  }

  private static long one(Pool pool, int times) {
    long total = 0;
    for (int time = 0; time < times; time++) {
      InetAddress address = pool.allocate(Policy.ROUND_ROBIN).orElseThrow();
      total += pool.release(address).ordinal() + 1;
    }
    return total;
  }

  private static long raw(Abi abi, int pool, int times) {
    int policy = Policy.ROUND_ROBIN.number();
    long total = 0;
    for (int time = 0; time < times; time++) {
      total += abi.poolAllocateMany(pool, policy, 0, 1);
      total += abi.poolRelease(pool);
    }
    return total;
  }

  private static long ordinal(Abi abi, int pool, int times) {
    int policy = Policy.ROUND_ROBIN.number();
    long total = 0;
    for (int time = 0; time < times; time++) {
      total += abi.poolReleaseAt(pool, abi.poolAllocate(pool, policy, 0));
    }
    return total;
  }

  private static long batch(Pool pool, int count, int times) {
    long total = 0;
    for (int time = 0; time < times; time++) {
      total += pool.releasePacked(pool.allocatePacked(count, Policy.ROUND_ROBIN, 0));
    }
    return total;
  }

  /** Median of the samples: nanoseconds for one time. */
  private static double time(Form form) {
    int times = 1;
    double[] samples = new double[SAMPLES];
    for (int index = 0; index < SAMPLES; ) {
      long took = run(form, times);
      if (took >= SAMPLE_NS) samples[index++] = (double) took / times;
      else times += took < SAMPLE_NS / 2 ? times : times / 8 + 1;
    }
    Arrays.sort(samples);
    return samples[SAMPLES / 2];
  }

  /** Runs the form until the compiler of the virtual machine has come to rest. */
  private static void warmUp(Form form) {
    CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();
    long start = System.nanoTime();
    long restingSince = start;
    long compiledMs = compiler.getTotalCompilationTime();
    int times = 1;
    for (long now = start;
        now - start < WARM_UP_NS || now - restingSince < REST_NS && now - start < WARM_UP_MAX_NS;
        now = System.nanoTime()) {
      if (run(form, times) < REST_NS / 10) times *= 2;
      if (compiler.getTotalCompilationTime() == compiledMs) continue;
      compiledMs = compiler.getTotalCompilationTime();
      restingSince = System.nanoTime();
    }
  }

  private static long run(Form form, int times) {
    long start = System.nanoTime();
    sum += form.repeat(times);
    return System.nanoTime() - start;
  }

  private static void print(String shape, String form, Double ns, String text) {
    Double rounded = ns == null ? null : Math.round(ns * 100) / 100.0;
    System.out.println(new Gson().toJson(new Figure("java", shape, form, rounded, text)));
  }
}
