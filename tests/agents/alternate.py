"""Two agents take turns on one run of Hone, each in a fresh session, for as many turns as asked (docs/agents-humanize.md)."""
from hmz.flows import Agent, AgentCollection, EnvCollection, FlowContext, FlowParams, LocalEnv, flow


class Agents(AgentCollection):
    first_chaser: Agent
    second_chaser: Agent


class Envs(EnvCollection):
    workspace: LocalEnv


class Params(FlowParams):
    turns: int = 2


@flow(agents=Agents, envs=Envs, params=Params)
async def alternate(task: str, *, agents: Agents, envs: Envs, params: Params, ctx: FlowContext) -> None:
    chasers = (agents["first_chaser"], agents["second_chaser"])
    for turn in range(params.turns):
        chaser = chasers[turn % 2]
        session = await chaser.spawn()
        await chaser.run(f"# Chaser {turn + 1}\n\n{task}", session=session, env=envs["workspace"])
