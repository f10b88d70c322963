package io.vendor.berth.core;

import static io.vendor.berth.core.RangeSetTest.assertStatus;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.vendor.berth.core.Abi.Ceiling;
import io.vendor.berth.core.Abi.Policy;
import io.vendor.berth.core.Abi.Status;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class HostileTest {
  private static final List<AddressRange> NONE = List.of();
  private static final List<AddressRange> SIXTEEN =
      List.of(AddressRange.parse("10.0.0.0-10.0.255.255"));

  private final Core core = Core.open();

  @Test
  void refusesAClosedPoolAndAClosedCore() {
    Pool pool = core.createPool(SIXTEEN, NONE);
    Pool alias = pool.in(core);
    pool.close();
    pool.close();
    assertStatus(Status.BAD_HANDLE, () -> pool.allocate(Policy.ASCENDING));
    assertStatus(Status.BAD_HANDLE, alias::counts);
    assertStatus(Status.BAD_HANDLE, alias::close);
    core.close();
    assertThrows(IllegalStateException.class, () -> core.createPool(SIXTEEN, NONE));
  }

  @Test
  void refusesTwoFamilies() {
    AddressRange v6 = AddressRange.parse("::1");
    assertStatus(Status.BAD_FAMILY, () -> core.createPool(SIXTEEN, List.of(v6)));
    Pool pool = core.createPool(SIXTEEN, NONE);
    assertStatus(Status.BAD_FAMILY, () -> pool.edit(List.of(v6), NONE));
    RangeSet set = core.rangeSet(Family.IPV6, NONE);
    assertStatus(Status.BAD_FAMILY, () -> pool.edit(set, set));
    set.close();
    pool.close();
    assertEquals(0, core.liveObjects());
  }

  @Test
  void refusesArgumentsOutsideWhatIsAllowed() {
    Pool pool = core.createPool(SIXTEEN, NONE);
    assertStatus(Status.BAD_ARGUMENT, () -> pool.allocatePacked(-1, Policy.ASCENDING, 0));
    assertStatus(Status.BAD_ARGUMENT, () -> pool.findFreeRun(0, 0, 0));
    assertStatus(Status.BAD_ARGUMENT, () -> pool.findFreeRun(1, 25, 0));
    assertStatus(Status.BAD_ARGUMENT, () -> pool.claimPacked(new byte[5]));
    assertEquals(-4, core.abi().poolAllocate(pool.handle(), 99, 0));
    assertEquals(-5, core.abi().poolReleaseMany(pool.handle(), Ceiling.MAX_EXCHANGE));
    assertEquals(-7, core.abi().exchange(Ceiling.MAX_EXCHANGE + 1));
    assertEquals(-4, core.abi().exchange(-1));
  }

  /** The buffer moves while the output of the batch grows it: what is read must be the new one. */
  @Test
  void readsABatchThatMovedTheBuffer() {
    Pool pool = core.createPool(SIXTEEN, NONE);
    int before = core.abi().exchange(0);
    byte[] packed = pool.allocatePacked(65_536, Policy.ASCENDING, 0);
    assertTrue(before != core.abi().exchange(0));
    byte[] last = Arrays.copyOfRange(packed, packed.length - 4, packed.length);
    assertArrayEquals(new byte[] {10, 0, (byte) 255, (byte) 255}, last);
    assertEquals(65_536, pool.releasePacked(packed));
  }

  @Test
  void forgetsAHundredThousandPools() {
    for (int count = 0; count < 100_000; count++) core.createPool(NONE, NONE).close();
    long after = core.stateBytes();
    for (int count = 0; count < 1_000; count++) core.createPool(SIXTEEN, NONE).close();
    assertEquals(0, core.liveObjects());
    assertTrue(core.stateBytes() - after < 65_536, "memory is used again");
  }

  /** surefire gives the tests a small heap. */
  @Test
  void answersThatMemoryIsOutWhenTheHeapIs() {
    Pool pool = core.createPool(SIXTEEN, NONE);
    pool.claim(Addresses.parse("10.0.0.9"));
    assertEquals(Status.NO_MEMORY.code(), core.abi().exchange(Ceiling.MAX_EXCHANGE));
    assertTrue(pool.test(Addresses.parse("10.0.0.9")));
    assertEquals(1, pool.counts().used());
  }

  @Test
  void goesOnWhenTheThreadIsInterrupted() {
    Thread.currentThread().interrupt();
    try (Pool pool = core.createPool(SIXTEEN, NONE)) {
      assertTrue(pool.allocate(Policy.ASCENDING).isPresent());
    } finally {
      assertTrue(Thread.interrupted(), "the interrupt is still there for the caller");
    }
  }

  /** A core that is interpreted does end then, and says so ever after. */
  @Test
  void refusesEverythingAfterACallThatEndedHalfWay() {
    Core interpreted = Core.open(Core.wasm());
    Thread.currentThread().interrupt();
    assertThrows(RuntimeException.class, () -> interpreted.createPool(SIXTEEN, NONE));
    assertTrue(Thread.interrupted());
    assertThrows(IllegalStateException.class, interpreted::liveObjects);
  }

  @Test
  void refusesBytesThatAreNoCore() {
    assertThrows(IllegalArgumentException.class, () -> Core.open(new byte[0]));
    byte[] empty = {0, 'a', 's', 'm', 1, 0, 0, 0};
    assertThrows(IllegalArgumentException.class, () -> Core.open(empty));
    byte[] cut = Arrays.copyOf(Core.wasm(), 5000);
    assertThrows(IllegalArgumentException.class, () -> Core.open(cut));
  }

  /** The bytecode is that of the embedded bytes: both leave the same memory behind. */
  @Test
  void computesWhatTheInterpreterComputes() {
    assertArrayEquals(walk(Core.open()), walk(Core.open(Core.wasm())));
  }

  private static byte[] walk(Core core) {
    Random random = new Random(7);
    Pool pool = core.createPool(SIXTEEN, NONE);
    pool.trackFreed();
    for (int step = 0; step < 100; step++) {
      Policy policy = Policy.values()[random.nextInt(4)];
      byte[] packed = pool.allocatePacked(random.nextInt(50), policy, random.nextInt());
      pool.releasePacked(Arrays.copyOf(packed, packed.length / 8 * 4));
    }
    pool.load(pool.save());
    return core.abi().readMemory(0, core.abi().stateBytes());
  }
}
