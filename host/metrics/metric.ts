/** Definitions of metrics, of which docs/monitoring.md is generated, and one process's metrics opened from them. */
import type { Counter, Gauge, Histogram } from "prom-client";
import PromCounter from "prom-client/lib/counter.js";
import PromGauge from "prom-client/lib/gauge.js";
import PromHistogram from "prom-client/lib/histogram.js";
import Registry from "prom-client/lib/registry.js";
import { messageOf } from "../lib/describe.ts";

/** Shortest time between two collections of values, which scrapes share: milliseconds. Many then cost little. */
const SCRAPE_SHARE_MS = 500;

/** The media type of {@link MetricSet.render}: the text format of Prometheus. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

interface Definition<K extends "counter" | "gauge" | "histogram", L extends string> {
  readonly kind: K;
  readonly name: string;
  readonly help: string;
  readonly labels: readonly L[];
}

interface HistogramDefinition<L extends string> extends Definition<"histogram", L> {
  /** Upper bounds, ascending. */
  readonly buckets: readonly number[];
}

export type MetricDefinition<L extends string = string> = Definition<"counter" | "gauge", L> | HistogramDefinition<L>;

type MetricDefinitions = Readonly<Record<string, MetricDefinition>>;

type Opened<M> =
  M extends HistogramDefinition<infer L>
    ? Histogram<L>
    : M extends Definition<"gauge", infer L>
      ? Gauge<L>
      : M extends Definition<"counter", infer L>
        ? Counter<L>
        : never;

export type OpenedMetrics<D extends MetricDefinitions> = { readonly [K in keyof D]: Opened<D[K]> };

export type Sample<L extends string> = readonly [labels: Readonly<Record<L, string>>, value: number];

const simple =
  <K extends "counter" | "gauge">(kind: K) =>
  <L extends string = never>(name: string, help: string, labels: readonly L[] = []): Definition<K, L> => ({
    kind,
    name,
    help,
    labels,
  });

export const counter = simple("counter");

export const gauge = simple("gauge");

export function histogram<L extends string = never>(
  name: string,
  help: string,
  { buckets, labels = [] }: { readonly buckets: readonly number[]; readonly labels?: readonly L[] },
): HistogramDefinition<L> {
  return { kind: "histogram", name, help, labels, buckets };
}

/** The metrics of one process. */
export class MetricSet<D extends MetricDefinitions = MetricDefinitions> {
  readonly metrics: OpenedMetrics<D>;
  /** All opened definitions. */
  readonly definitions: MetricDefinition[] = [];
  readonly #registry = new Registry();
  readonly #collectors: (() => void | Promise<void>)[] = [];
  readonly #onFailure: (text: string, error: unknown) => void;
  #rendering: Promise<string> | undefined;
  #failure = "";

  /** `onFailure` is called once for each change of the reason. */
  constructor(definitions: D, onFailure: (text: string, error: unknown) => void) {
    this.#onFailure = onFailure;
    this.metrics = this.open(definitions);
  }

  open<E extends MetricDefinitions>(definitions: E): OpenedMetrics<E> {
    this.definitions.push(...Object.values(definitions));
    const opened = Object.entries(definitions).map(([key, each]) => [key, this.#open(each)]);
    return Object.fromEntries(opened);
  }

  /** Calls `collect` before each answer to a scrape: it sets values from existing state. If it fails, they stay. */
  onScrape(collect: () => void | Promise<void>): void {
    this.#collectors.push(collect);
  }

  /** Returns all series in the text format of Prometheus. Never rejects. */
  render(): Promise<string> {
    this.#rendering ??= this.#render().finally(() => {
      setTimeout(() => {
        this.#rendering = undefined;
      }, SCRAPE_SHARE_MS).unref();
    });
    return this.#rendering;
  }

  async #render(): Promise<string> {
    let failure = "";
    for (const collect of this.#collectors) {
      try {
        await collect();
      } catch (error) {
        failure = messageOf(error);
        if (failure !== this.#failure)
          this.#onFailure("Reading values for metrics failed; they keep their last ones", error);
      }
    }
    this.#failure = failure;
    return this.#registry.metrics();
  }

  #open(definition: MetricDefinition): unknown {
    const { name, help, labels: labelNames } = definition;
    const common = { name, help, labelNames, registers: [this.#registry] };
    switch (definition.kind) {
      case "counter":
        return new PromCounter(common);
      case "gauge":
        return new PromGauge(common);
      case "histogram":
        return new PromHistogram({ ...common, buckets: [...definition.buckets] });
    }
  }
}

/** Replaces all series of a gauge. */
export function setGauge<L extends string>(gauge: Gauge<L>, samples: Iterable<Sample<L>>): void {
  gauge.reset();
  for (const [labels, value] of samples) gauge.set(labels, value);
}

/** Replaces all series of a counter by totals that are counted elsewhere. */
export function setTotals<L extends string>(counter: Counter<L>, samples: Iterable<Sample<L>>): void {
  counter.reset();
  for (const [labels, total] of samples) counter.inc(labels, total);
}

/** As {@link setTotals}, of a counter without labels. */
export function setTotal(counter: Counter, total: number): void {
  counter.reset();
  counter.inc(total);
}

/** The value of a label for all unknown values: callers cannot create new series. */
const OTHER = "other";

/** Returns the value if it is one of the known ones, else "other". */
export function foldLabel(value: string, known: ReadonlySet<string>): string {
  return known.has(value) ? value : OTHER;
}
