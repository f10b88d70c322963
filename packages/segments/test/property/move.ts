/** One step of a search, from a world to the next. */
export class Move<Scene, C, World extends { readonly clusters: readonly C[]; readonly ids: number }> {
  readonly scene: Scene;
  readonly world: World;
  ids: number;

  constructor(scene: Scene, world: World) {
    this.scene = scene;
    this.world = world;
    this.ids = world.ids;
  }

  newId = (): string => `id${this.ids++}`;

  with(index: number, change: Partial<C>, others: Partial<World> = {}): World {
    const clusters = this.world.clusters.map((each, at) => (at === index ? { ...each, ...change } : each));
    return { ...this.world, clusters, ...others, ids: this.ids };
  }
}
