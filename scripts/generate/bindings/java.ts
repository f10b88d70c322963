/**
 * The raw exports for Java: Abi.java, one class with a method per export, the statuses and policies as enums,
 * ceilings and offsets as constants. Laid out as google-java-format does: two spaces, 100 columns.
 */
import { type AbiDescription, type AbiExport, isUnsigned } from "../abi-description.ts";
import type { GeneratedText } from "../generated-text.ts";

const WIDTH = 100;

function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Escapes the characters that Javadoc would read as markup. */
function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** `text` in lines no longer than the page; those after the first begin with `prefix`. */
function wrap(text: string, prefix: string): string {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1) ?? "";
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && prefix.length + longer.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines.join(`\n${prefix}`);
}

/** A Javadoc comment of paragraphs and tags, in one line where it fits. */
function javadoc(indent: string, paragraphs: readonly string[], tags: readonly string[] = []): string {
  const single = `${indent}/** ${paragraphs[0]} */`;
  if (paragraphs.length === 1 && tags.length === 0 && single.length <= WIDTH) return single;
  const prefix = `${indent} * `;
  const blank = `\n${indent} *\n${prefix}`;
  const prose = paragraphs.map((text, index) => wrap(index === 0 ? text : `<p>${text}`, prefix)).join(blank);
  const list = tags.map((tag) => wrap(tag, `${prefix}    `)).join(`\n${prefix}`);
  return `${indent}/**\n${prefix}${prose}${tags.length === 0 ? "" : blank + list}\n${indent} */`;
}

function renderExport({ name, doc, params, input, output, result, statuses }: AbiExport, index: number): string {
  const refusals = statuses.length === 0 ? "" : `; or a status: ${statuses.join(", ")}`;
  const paragraphs = [`{@code ${name}}: ${escapeHtml(doc)}`];
  if (input !== undefined) paragraphs.push(`In the exchange buffer before: ${escapeHtml(input)}.`);
  if (output !== undefined) paragraphs.push(`In the exchange buffer after: ${escapeHtml(output)}.`);
  const tags = params.map((param) => {
    const is = escapeHtml(param.is.replaceAll("`", ""));
    return `@param ${camelCase(param.name)} ${isUnsigned(param) ? `all 32 bits count: ${is}` : is}`;
  });
  tags.push(`@return ${escapeHtml(result.replaceAll("`", ""))}${refusals}`);
  const list = params.map((param) => `int ${camelCase(param.name)}`).join(", ");
  const call = [String(index), ...params.map((param) => camelCase(param.name))].join(", ");
  const text = paragraphs.map((paragraph) => paragraph.replaceAll(/`(\w+)`/g, "{@code $1}"));
  return `${javadoc("  ", text, tags)}
  public int ${camelCase(name)}(${list}) {
    return wasm.call(${call});
  }`;
}

function renderConstant(name: string, value: number, doc: string): string {
  return `${javadoc("    ", [doc])}\n    public static final int ${name} = ${value};`;
}

/** An enum constant with its number and, where users see it, its text. */
function renderMember(name: string, value: number, doc: string, text = ""): string {
  const single = `    ${name}(${value}${text === "" ? "" : `, "${text}"`})`;
  const broken = `    ${name}(\n        ${value}, "${text}")`;
  return `${javadoc("    ", [doc])}\n${single.length < WIDTH ? single : broken}`;
}

export function renderJavaBindings(abi: AbiDescription): readonly GeneratedText[] {
  const { statuses, policies, ceilings, counts } = abi;
  const text = `package io.vendor.berth.core;

import java.util.List;

/**
 * The exports of the core, one method each, for whoever wants ordinals and handles. Values are 32
 * bits as they stand; a result below 0 is a {@link Status}, which nothing here turns into an
 * exception. Input and output pass through the exchange buffer, which any call may move.
 */
public final class Abi {
  /** A core of another major version is refused. */
  public static final int MAJOR = ${abi.version.major};

  /** Later minor versions have everything that this one has. */
  public static final int MINOR = ${abi.version.minor};

  /** Why the core refused an operation. */
  public enum Status {
${statuses.map(({ name, code, doc }) => renderMember(name, code, doc, doc)).join(",\n\n")};

    private final int code;
    private final String text;

    Status(int code, String text) {
      this.code = code;
      this.text = text;
    }

    /** The number that the core gives: 0 or below. */
    public int code() {
      return code;
    }

    /** Its meaning, as a sentence. */
    public String text() {
      return text;
    }

    /** The status with this number. Throws IllegalArgumentException where there is none. */
    public static Status of(int code) {
      for (Status status : values()) {
        if (status.code == code) return status;
      }
      throw new IllegalArgumentException("There is no status " + code);
    }
  }

  /** In which order free addresses of the window are taken. */
  public enum Policy {
${policies.map(({ name, value, doc }) => renderMember(name, value, doc)).join(",\n\n")};

    private final int number;

    Policy(int number) {
      this.number = number;
    }

    /** The number that the raw calls take. */
    public int number() {
      return number;
    }
  }

  /** The limits of one instance. */
  public static final class Ceiling {
${ceilings.map(({ name, value, doc }) => renderConstant(name, value, doc)).join("\n\n")}

    private Ceiling() {}
  }

  /** The place of each number in the output of {@link #poolCounts}, in bytes from its start. */
  public static final class CountOffset {
${counts.map(({ name, at, as, doc }) => renderConstant(name.toUpperCase(), at, `As ${as}: ${doc}.`)).join("\n\n")}

    private CountOffset() {}
  }

  /** In the order of the methods, which call them by their place here. */
  static final List<String> EXPORTS =
      List.of(
${abi.exports.map(({ name }) => `          "${name}"`).join(",\n")});

  private final WasmInstance wasm;

  Abi(WasmInstance wasm) {
    this.wasm = wasm;
  }

  /** A copy of the memory from an address on, such as the one {@link #exchange} gives. */
  public byte[] readMemory(int address, int lengthBytes) {
    return wasm.memory().readBytes(address, lengthBytes);
  }

  /** Writes to the memory at an address, such as the one {@link #exchange} gives. */
  public void writeMemory(int address, byte[] bytes) {
    wasm.memory().write(address, bytes);
  }

${abi.exports.map(renderExport).join("\n\n")}
}
`;
  return [{ path: "embeddings/java/src/main/java/io/vendor/berth/core/Abi.java", text }];
}
