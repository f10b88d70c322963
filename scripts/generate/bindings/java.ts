/** The raw layer of the Java embedding: enums, ceilings, offsets, and an abstract class with a method per export. */
import type { GeneratedText } from "../generated-text.ts";
import { type Binding, type Call, type Constant, camelCase, prefixed } from "./binding.ts";

const escapeHtml = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const constants = (name: string, doc: string, items: readonly Constant[]) => `
  /** ${doc} */
  public static final class ${name} {
${items.map((item) => `    /** ${escapeHtml(item.doc)} */\n    public static final int ${item.name} = ${item.value};\n`).join("")}
    private ${name}() {}
  }
`;

const member = ({ name, value, doc }: Constant) =>
  `    /** ${escapeHtml(doc)} */\n    ${name}(${value}, ${JSON.stringify(doc)})`;

const method = ({ name, doc, facts, params }: Call) => `
  /**
${prefixed("   * ", [doc, ...facts].map(escapeHtml))}   */
  public int ${camelCase(name)}(${params.map((param) => `int ${camelCase(param.name)}`).join(", ")}) {
    return invoke(${[`"${name}"`, ...params.map((param) => camelCase(param.name))].join(", ")});
  }
`;

const dispatch = ({ name, params }: Call) =>
  `        case "${name}" -> ${camelCase(name)}(${params.map((_, at) => `args[${at}]`).join(", ")});\n`;

export function renderJavaBindings({ statuses, policies, ceilings, counts, calls }: Binding): GeneratedText {
  const text = `package io.vendor.berth.core;

import com.dylibso.chicory.runtime.Memory;
import java.util.Optional;

/** The exports of the core. A result below 0 is a CoreException, but for call(). All 32 bits of "u32" count. */
public abstract class Raw {
  /** Results of an export below 0. */
  public enum Status {
${statuses.map(member).join(",\n")};

    public final int code;
    public final String text;

    Status(int code, String text) {
      this.code = code;
      this.text = text;
    }

    static Status of(int code) {
      for (Status status : values()) if (status.code == code) return status;
      throw new IllegalArgumentException("There is no status " + code);
    }
  }

  /** Which free address of the window is next. */
  public enum Policy {
${policies.map(member).join(",\n")};

    public final int number;
    public final String text;

    Policy(int number, String text) {
      this.number = number;
      this.text = text;
    }
  }
${constants("Ceiling", "The limits of one core.", ceilings)}${constants("CountsAt", "Places of the counts of pool_counts.", counts)}
  /** A refusal: the export of the core that refused, and its status. */
  public static final class CoreException extends RuntimeException {
    private static final long serialVersionUID = 1;
    public final String operation;
    public final Status status;

    CoreException(String operation, Status status) {
      super(operation + " refused with " + status + " (" + status.code + "): " + status.text);
      this.operation = operation;
      this.status = status;
    }
  }

  abstract int invoke(String name, long... args);

  public abstract Memory memory();

  /** Writes to the start of the exchange buffer, which grows if it must. */
  public final void write(byte[] input) {
    memory().write(exchange(input.length), input);
  }

  /** The first bytes of the exchange buffer. */
  public final byte[] read(int length) {
    return memory().readBytes(exchange(0), length);
  }

  /** Calls the method of the export with that name. A result below 0 is the code of a {@link Status}. */
  public final int call(String name, int... args) {
    try {
      return switch (name) {
${calls.map(dispatch).join("")}        default -> throw new IllegalArgumentException("There is no export " + name);
      };
    } catch (CoreException refusal) {
      return refusal.status.code;
    }
  }

  /** The same; none in the place of one status, and a CoreException for others. */
  final Optional<Integer> find(Status absent, String name, int... args) {
    int result = call(name, args);
    if (result >= 0) return Optional.of(result);
    if (result == absent.code) return Optional.empty();
    throw new CoreException(name, Status.of(result));
  }
${calls.map(method).join("")}}
`;
  return { path: "embeddings/java/src/main/java/io/vendor/berth/core/Raw.java", text };
}
