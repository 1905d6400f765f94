"""Two agents take turns on one worktree, each turn in a session of its own."""
from hmz.flows import Agent, AgentCollection, EnvCollection, FlowContext, FlowParams, LocalEnv, flow


class Agents(AgentCollection):
    first: Agent
    second: Agent


class Envs(EnvCollection):
    workspace: LocalEnv


class Params(FlowParams):
    turns: int = 2


@flow(agents=Agents, envs=Envs, params=Params)
async def relay(task: str, *, agents: Agents, envs: Envs, params: Params, ctx: FlowContext) -> None:
    """The task again in every turn; what one turn leaves the next is the worktree and the record."""
    for turn in range(params.turns):
        agent = agents["first" if turn % 2 == 0 else "second"]
        await agent.run(f"Turn {turn + 1}. {task}", session=await agent.spawn(), env=envs["workspace"])
