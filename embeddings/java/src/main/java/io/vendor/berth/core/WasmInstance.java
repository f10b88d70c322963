package io.vendor.berth.core;

import com.dylibso.chicory.runtime.ByteArrayMemory;
import com.dylibso.chicory.runtime.Instance;
import com.dylibso.chicory.runtime.InterpreterMachine;
import com.dylibso.chicory.runtime.Machine;
import com.dylibso.chicory.runtime.Memory;
import com.dylibso.chicory.wasm.ChicoryException;
import com.dylibso.chicory.wasm.Parser;
import com.dylibso.chicory.wasm.WasmModule;
import com.dylibso.chicory.wasm.types.ExportSection;
import com.dylibso.chicory.wasm.types.ExternalType;
import io.vendor.berth.core.compiled.Compiled;
import java.util.function.Function;

/** One instance of a module: its memory, and the exports by their place in {@link Abi#EXPORTS}. */
final class WasmInstance {
  private final WasmModule module;
  private final Function<Instance, Machine> engine;
  private final Machine machine;
  private final Memory memory;
  private final int[] functions;
  private boolean broken;

  private WasmInstance(WasmModule module, Function<Instance, Machine> engine) {
    this.module = module;
    this.engine = engine;
    Instance instance =
        Instance.builder(module)
            .withMachineFactory(engine)
            .withMemoryFactory(ByteArrayMemory::new)
            .build();
    machine = instance.getMachine();
    memory = instance.memory();
    functions = Abi.EXPORTS.stream().mapToInt(name -> functionOf(module, name)).toArray();
  }

  /** The embedded core, which is bytecode since the build. */
  static WasmInstance compiled() {
    return new WasmInstance(Compiled.load(), Compiled::create);
  }

  /** Other bytes, interpreted. Throws IllegalArgumentException when they are no such module. */
  static WasmInstance interpreted(byte[] wasm) {
    try {
      return new WasmInstance(Parser.parse(wasm), InterpreterMachine::new);
    } catch (ChicoryException error) {
      throw new IllegalArgumentException("The bytes are no core: " + error.getMessage(), error);
    }
  }

  /** A fresh instance of the same module whose memory is as large and begins with this state. */
  WasmInstance copy(int stateBytes) {
    WasmInstance copy = new WasmInstance(module, engine);
    int missing = memory.pages() - copy.memory.pages();
    if (missing > 0) copy.memory.grow(missing);
    copy.memory.write(0, memory.readBytes(0, stateBytes));
    return copy;
  }

  Memory memory() {
    return memory;
  }

  /**
   * Calls an export. What ends it half way, such as a stack without room, leaves a state that
   * nobody knows: every later call is then an IllegalStateException.
   */
  int call(int export, long... arguments) {
    if (broken) throw new IllegalStateException("A call of this core ended half way; open another");
    try {
      return (int) machine.call(functions[export], arguments)[0];
    } catch (RuntimeException | Error failure) {
      broken = true;
      throw failure;
    }
  }

  private static int functionOf(WasmModule module, String name) {
    ExportSection exports = module.exportSection();
    for (int index = 0; index < exports.exportCount(); index++) {
      var export = exports.getExport(index);
      boolean isFunction = export.exportType() == ExternalType.FUNCTION;
      if (isFunction && export.name().equals(name)) return export.index();
    }
    throw new ChicoryException("no export \"" + name + "\"");
  }
}
