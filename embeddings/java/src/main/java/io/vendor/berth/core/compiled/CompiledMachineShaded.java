package io.vendor.berth.core.compiled;

import com.dylibso.chicory.runtime.Instance;
import com.dylibso.chicory.runtime.Memory;
import com.dylibso.chicory.wasm.ChicoryException;

/**
 * What the bytecode of the core calls, in the place of the class that Chicory's compiler writes
 * under this name. It differs in two things, so that a call never ends half way with the allocator
 * half changed: an interrupt of the thread is left to the caller, and a heap that is exhausted is a
 * memory that does not grow, which the core answers with a status.
 */
final class CompiledMachineShaded {
  private CompiledMachineShaded() {}

  /** Chicory asks here, before every call and loop, whether to give up. No call takes long. */
  public static void checkInterruption() {}

  /**
   * A memory that fails in the middle of growing keeps the pages it has got, and the heap stays
   * full: so first all of them are asked for and let go again.
   */
  public static int memoryGrow(int pages, Memory memory) {
    try {
      return memory.grow(new byte[pages][Memory.PAGE_SIZE].length);
    } catch (OutOfMemoryError error) {
      return -1;
    }
  }

  public static int memoryPages(Memory memory) {
    return memory.pages();
  }

  public static void memoryCopy(int to, int from, int length, Memory memory) {
    memory.copy(to, from, length);
  }

  public static void memoryFill(int start, byte value, int length, Memory memory) {
    memory.fill(value, start, start + length);
  }

  public static byte memoryReadByte(int base, int offset, Memory memory) {
    return memory.read(address(base, offset));
  }

  public static short memoryReadShort(int base, int offset, Memory memory) {
    return memory.readShort(address(base, offset));
  }

  public static int memoryReadInt(int base, int offset, Memory memory) {
    return memory.readInt(address(base, offset));
  }

  public static long memoryReadLong(int base, int offset, Memory memory) {
    return memory.readLong(address(base, offset));
  }

  public static void memoryWriteByte(int base, byte value, int offset, Memory memory) {
    memory.writeByte(address(base, offset), value);
  }

  public static void memoryWriteShort(int base, short value, int offset, Memory memory) {
    memory.writeShort(address(base, offset), value);
  }

  public static void memoryWriteInt(int base, int value, int offset, Memory memory) {
    memory.writeI32(address(base, offset), value);
  }

  public static void memoryWriteLong(int base, long value, int offset, Memory memory) {
    memory.writeLong(address(base, offset), value);
  }

  public static int i32_ge_u(int left, int right) {
    return Integer.compareUnsigned(left, right) >= 0 ? 1 : 0;
  }

  /** The core has no table, so nothing is called by way of one. */
  public static long[] callIndirect(long[] arguments, int type, int function, Instance instance) {
    throw throwIndirectCallTypeMismatch();
  }

  public static RuntimeException throwIndirectCallTypeMismatch() {
    return new ChicoryException("An indirect call, although the core has no table");
  }

  public static RuntimeException throwUnknownFunction(int function) {
    return new ChicoryException("There is no function " + function);
  }

  public static RuntimeException throwCallStackExhausted(StackOverflowError error) {
    return new ChicoryException("The stack of the thread is exhausted", error);
  }

  /** A base above 2 GiB stays negative, and is refused as out of bounds. */
  private static int address(int base, int offset) {
    return base < 0 ? base : base + offset;
  }
}
