/** ValidatingAdmissionPolicies and their bindings, as the API server applies them to a write. */
import { compile, type Scope } from "./kubernetes-cel.ts";

interface Named {
  readonly name: string;
  readonly expression: string;
}

interface Validation {
  readonly expression: string;
  readonly messageExpression: string;
  readonly reason: "Forbidden";
}

/** The parts that deploy/policies.yaml has. */
interface PolicySpec {
  readonly failurePolicy: "Fail";
  readonly matchConstraints: {
    readonly resourceRules: readonly {
      readonly apiGroups: readonly string[];
      readonly apiVersions: readonly string[];
      readonly resources: readonly string[];
      readonly operations: readonly string[];
    }[];
  };
  readonly matchConditions: readonly Named[];
  readonly variables: readonly Named[];
  readonly validations: readonly Validation[];
}

export interface PolicyDocument {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: unknown;
}

interface Bound {
  readonly name: string;
  readonly binding: string;
  readonly spec: PolicySpec;
}

/** Which writes a policy is for. */
export interface Target {
  /** "" for the core group. */
  readonly group: string;
  /** `ippools/status` */
  readonly resource: string;
  readonly operation: string;
}

const KNOWN = ["failurePolicy", "matchConstraints", "matchConditions", "variables", "validations"];

export class Policies {
  readonly #bound: readonly Bound[];
  readonly #byTarget = new Map<string, readonly Bound[]>();

  constructor(documents: readonly PolicyDocument[]) {
    const specs = new Map(
      documents
        .filter(({ kind }) => kind === "ValidatingAdmissionPolicy")
        .map(({ metadata, spec }) => [metadata.name, asPolicy(metadata.name, spec)]),
    );
    this.#bound = documents
      .filter(({ kind }) => kind === "ValidatingAdmissionPolicyBinding")
      .map(({ metadata, spec }) => bind(metadata.name, spec as Readonly<Record<string, unknown>>, specs));
  }

  /** Whether any policy is for the write, for any writer. */
  concern(target: Target): boolean {
    return this.#for(target).length > 0;
  }

  /** Returns the message of the first refusal. `scope`: request, object and oldObject as expressions see them. */
  refusal(target: Target, scope: Scope): string | undefined {
    for (const { name, binding, spec } of this.#for(target)) {
      const { matchConditions, variables, validations } = spec;
      if (!matchConditions.every(({ expression }) => compile(expression)(scope) === true)) continue;
      const all = { ...scope, variables: lazily(variables, scope) };
      const text = validations.map((each) => refusalOf(each, all)).find((each) => each !== undefined);
      if (text !== undefined)
        return `ValidatingAdmissionPolicy '${name}' with binding '${binding}' denied request: ${text}`;
    }
    return undefined;
  }

  #for({ group, resource, operation }: Target): readonly Bound[] {
    const key = `${group} ${resource} ${operation}`;
    const found =
      this.#byTarget.get(key) ??
      this.#bound.filter(({ spec }) =>
        spec.matchConstraints.resourceRules.some(
          ({ apiGroups, apiVersions, resources, operations }) =>
            apiGroups.includes(group) &&
            apiVersions.includes("*") &&
            resources.includes(resource) &&
            operations.includes(operation),
        ),
      );
    this.#byTarget.set(key, found);
    return found;
  }
}

function asPolicy(name: string, spec: unknown): PolicySpec {
  const strange = Object.keys(Object(spec)).find((key) => !KNOWN.includes(key));
  if (strange !== undefined) throw new Error(`The fake does not know what ${strange} of policy ${name} means`);
  return { matchConditions: [], variables: [], ...Object(spec) };
}

function bind(
  binding: string,
  spec: Readonly<Record<string, unknown>>,
  policies: ReadonlyMap<string, PolicySpec>,
): Bound {
  const { policyName, validationActions, ...others } = spec;
  const name = String(policyName);
  const policy = policies.get(name);
  const isPlain = Object.keys(others).length === 0 && JSON.stringify(validationActions) === '["Deny"]';
  if (policy === undefined || !isPlain) throw new Error(`The fake does not know what binding ${binding} means`);
  return { name, binding, spec: policy };
}

/** Each variable is evaluated when it is first used, as it may fail where it is not. */
function lazily(variables: readonly Named[], scope: Scope): object {
  const values = {};
  const all = { ...scope, variables: values };
  for (const { name, expression } of variables) {
    const get = (): unknown => {
      const value = compile(expression)(all);
      Object.defineProperty(values, name, { value });
      return value;
    };
    Object.defineProperty(values, name, { get, enumerable: true, configurable: true });
  }
  return values;
}

/** Returns undefined if the validation holds; an expression that fails refuses (failurePolicy Fail). */
function refusalOf({ expression, messageExpression }: Validation, scope: Scope): string | undefined {
  try {
    return compile(expression)(scope) === true ? undefined : String(compile(messageExpression)(scope)).trim();
  } catch (error) {
    return `expression '${expression}' resulted in error: ${error instanceof Error ? error.message : error}`;
  }
}
