// Layered layout of the pipeline: sources first, every operator after those that feed it; loop-closing edges are set apart.

// operators: [{name, inputs}] -> {layers: [[name or dummy id]], edges: [{from, to, via: [ids]}], loops: [{from, to}]}
export function layered(operators) {
  const after = new Map(operators.map((o) => [o.name, []]));
  for (const o of operators) for (const p of o.inputs) after.get(p).push(o.name);
  const loops = loopEdges(operators, after);
  const isLoop = (p, c) => loops.some((l) => l.from === p && l.to === c);

  const depth = new Map();
  const depthOf = (name) => {
    if (!depth.has(name)) {
      const inputs = operators.find((o) => o.name === name).inputs.filter((p) => !isLoop(p, name));
      depth.set(name, inputs.length ? Math.max(...inputs.map(depthOf)) + 1 : 0);
    }
    return depth.get(name);
  };
  operators.forEach((o) => depthOf(o.name));

  const layers = Array.from({ length: Math.max(...depth.values()) + 1 }, () => []);
  for (const o of operators) layers[depth.get(o.name)].push(o.name);
  const edges = [];
  for (const o of operators) {
    for (const p of o.inputs.filter((input) => !isLoop(input, o.name))) {
      const via = [];
      for (let d = depth.get(p) + 1; d < depth.get(o.name); d++) {
        const id = `${p}>${o.name}@${d}`;
        via.push(id);
        layers[d].push(id);
      }
      edges.push({ from: p, to: o.name, via });
    }
  }
  untangle(layers, edges);
  return { layers, edges, loops };
}

// Edges that lead back to an operator still open in a depth-first walk from the sources.
function loopEdges(operators, after) {
  const open = new Set();
  const done = new Set();
  const found = [];
  const visit = (name) => {
    open.add(name);
    for (const next of after.get(name)) {
      if (open.has(next)) found.push({ from: name, to: next });
      else if (!done.has(next)) visit(next);
    }
    open.delete(name);
    done.add(name);
  };
  const sources = operators.filter((o) => o.source || !o.inputs.length);
  for (const o of [...sources, ...operators]) if (!done.has(o.name)) visit(o.name);
  return found;
}

// Barycentre sweeps: each layer is ordered by the mean place of its neighbours, down and up again, a few times.
function untangle(layers, edges) {
  const links = edges.flatMap((e) => {
    const way = [e.from, ...e.via, e.to];
    return way.slice(1).map((to, i) => [way[i], to]);
  });
  for (let sweep = 0; sweep < 6; sweep++) {
    const down = sweep % 2 === 0;
    const order = down ? layers.map((_, i) => i).slice(1) : layers.map((_, i) => i).slice(0, -1).reverse();
    for (const i of order) {
      const beside = new Map(layers[down ? i - 1 : i + 1].map((id, place) => [id, place]));
      const weight = new Map(layers[i].map((id, place) => {
        const near = links.filter(([a, b]) => (down ? b === id : a === id)).map(([a, b]) => beside.get(down ? a : b)).filter((p) => p !== undefined);
        return [id, near.length ? near.reduce((s, p) => s + p, 0) / near.length : place];
      }));
      layers[i].sort((a, b) => weight.get(a) - weight.get(b));
    }
  }
}
