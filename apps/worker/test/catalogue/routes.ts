import type { PathParam } from '@pmail/contracts/routes/params.ts';
import type { RouteSpec } from '@pmail/contracts/routes/spec.ts';
import { ROUTE_IDS, type RouteId, routeSpec } from '@pmail/contracts/routes.ts';
import { expect } from 'vitest';
import { type Call, paths } from '../support.ts';
import { type Also, sample, type World } from './world.ts';

/** Routes by what they have in common, and their sample requests with something else in them. */

export const having = (test: (spec: RouteSpec) => boolean): RouteId[] => ROUTE_IDS.filter((id) => test(routeSpec(id)));

export const withParam = (name: PathParam): RouteId[] => having(({ params }) => name in params.shape);

export const openTo =
  (level: 'tenant' | 'identity') =>
  (id: RouteId): boolean => {
    const { access } = routeSpec(id);
    return access.kind === 'key' && (access.levels === undefined || access.levels.includes(level));
  };

/** The sample of a route with other path parameters. */
export function naming(world: World, route: RouteId, params: Record<string, string>): Call {
  const usual = sample(world, route);
  return { ...usual, params: { ...usual.params, ...params } };
}

/** The answer names these paths and no others. */
export function names(...expected: string[]): { also: Also } {
  return { also: ({ details }) => expect(paths(details ?? {})).toEqual(expected) };
}
