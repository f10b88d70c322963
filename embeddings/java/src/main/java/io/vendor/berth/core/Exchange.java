package io.vendor.berth.core;

import io.vendor.berth.core.Abi.Status;
import java.math.BigInteger;
import java.net.InetAddress;
import java.util.Arrays;
import java.util.List;

/** The door to one instance: bytes through the exchange buffer, refusals as exceptions. */
final class Exchange {
  /** Room for any one address or number before the first batch. */
  private static final int FIRST_BYTES = 4096;

  private static final int SEED_BYTES = 16;

  private final WasmInstance wasm;
  final Abi abi;

  private Exchange(WasmInstance wasm) {
    this.wasm = wasm;
    abi = new Abi(wasm);
  }

  /** An instance with nothing in it. Throws IllegalArgumentException on a core of another ABI. */
  static Exchange open(WasmInstance wasm) {
    Exchange exchange = new Exchange(wasm);
    int major = exchange.abi.abiVersion() >>> 16;
    if (major != Abi.MAJOR) {
      throw new IllegalArgumentException(
          "The core has ABI version " + major + ", wanted " + Abi.MAJOR);
    }
    exchange.check("exchange", exchange.abi.exchange(FIRST_BYTES));
    return exchange;
  }

  Exchange copy() {
    return new Exchange(wasm.copy(abi.stateBytes()));
  }

  /** Copies input to the start of the buffer, which grows where it must. */
  void write(byte[] input) {
    wasm.memory().write(check("exchange", abi.exchange(input.length)), input);
  }

  /** The low 128 bits of a number, big-endian. */
  void writeSeed(BigInteger seed) {
    byte[] bytes = new byte[SEED_BYTES];
    byte[] given = seed.toByteArray();
    if (seed.signum() < 0) Arrays.fill(bytes, (byte) 0xff);
    int length = Math.min(given.length, SEED_BYTES);
    System.arraycopy(given, given.length - length, bytes, SEED_BYTES - length, length);
    write(bytes);
  }

  /** A copy of the output's first bytes. */
  byte[] read(int lengthBytes) {
    return wasm.memory().readBytes(abi.exchange(0), lengthBytes);
  }

  InetAddress readAddress(Family family) {
    return family.address(read(family.widthBytes()));
  }

  /** The result of an operation that succeeded; else a CoreException. */
  int check(String operation, int result) {
    if (result < 0) throw new CoreException(operation, Status.of(result));
    return result;
  }

  /** The same for a result in which one status is no failure. */
  int check(String operation, int result, Status expected) {
    return result == expected.code() ? result : check(operation, result);
  }

  /** An operation on as many items as stand in the exchange buffer. */
  interface Batch {
    int run(int handle, int count);
  }

  /** Runs a batch on addresses, 4 or 16 big-endian bytes each: how many gave 1. */
  int run(String operation, Batch batch, int handle, Family family, byte[] packed) {
    int count = packed.length / family.widthBytes();
    if (count * family.widthBytes() != packed.length) {
      throw new CoreException(operation, Status.BAD_ARGUMENT);
    }
    write(packed);
    return check(operation, batch.run(handle, count));
  }

  /** The same: 1 or 0 for each address. One outside is 0. */
  byte[] whichOf(String operation, Batch batch, int handle, Family family, byte[] packed) {
    run(operation, batch, handle, family, packed);
    byte[] outcomes = read(packed.length / family.widthBytes());
    for (int index = 0; index < outcomes.length; index++) {
      if (outcomes[index] != 1) outcomes[index] = 0;
    }
    return outcomes;
  }

  /** The same: 1, 0 or OUTSIDE for each address, as for one of another family or with a zone. */
  byte[] outcomesOf(
      String operation, Batch batch, int handle, Family family, List<InetAddress> addresses) {
    List<InetAddress> inside = addresses.stream().filter(family::has).toList();
    run(operation, batch, handle, family, family.pack(inside));
    byte[] given = read(inside.size());
    if (given.length == addresses.size()) return given;
    byte[] outcomes = new byte[addresses.size()];
    Arrays.fill(outcomes, (byte) Status.OUTSIDE.code());
    int next = 0;
    for (int index = 0; index < outcomes.length; index++) {
      if (family.has(addresses.get(index))) outcomes[index] = given[next++];
    }
    return outcomes;
  }
}
