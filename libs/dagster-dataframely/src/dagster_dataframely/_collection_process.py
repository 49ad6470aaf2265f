"""The order of events in one run of a collection: the six exits, shared by its members."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from dagster_dataframely._collections import CollectionRules
from dagster_dataframely._declaration import AssetYield, Declaration, Surroundings
from dagster_dataframely._judging import check_columns, column_schema_error, judge, verdict_of
from dagster_dataframely._member_verdicts import judge_members
from dagster_dataframely._process import accept, find_error, refuse
from dagster_dataframely._reporting import report_columns, report_skip
from dagster_dataframely._returned import Returned, unpack
from dagster_dataframely._rules import SchemaRules
from dagster_dataframely.errors import ReturnValueError, type_name


@dataclass(frozen=True)
class Member:
    """One member as an asset."""

    declaration: Declaration
    """The asset's: its rules are those of the schema, then the filters that apply to the member."""
    schema_rules: SchemaRules
    """The rules of the schema alone."""
    surroundings: Surroundings

    @property
    def of_schema(self) -> Declaration:
        """What is declared without the filters, which need the other members."""
        return replace(self.declaration, rules=self.schema_rules)


def process_members(
    name: str, rules: CollectionRules, members: Mapping[str, Member], returned: object
) -> Iterator[AssetYield]:
    """Turn what the function returned into the events of every member.

    The error rows of all members are written before the outcome is chosen. Where one member must not
    be written, none is.
    """
    results = _unpack(name, rules, members, returned)
    skipped = [member for name, member in members.items() if name not in results]
    if not results:
        yield from _skip_all(skipped)
        return
    checks = {name: check_columns(members[name].of_schema, results[name].frame) for name in results}
    drifted = [name for name, check in checks.items() if not check.passed]
    if drifted:
        for each, check in checks.items():
            yield from report_columns(check, members[each].surroundings)
        raise column_schema_error(members[drifted[0]].of_schema, results[drifted[0]].frame)
    # Staged rows have to be there until the IO managers have written them, after each `yield`.
    with ExitStack() as stack:
        verdicts = {
            name: stack.enter_context(
                verdict_of(members[name].of_schema, result.frame, members[name].surroundings)
            )
            for name, result in results.items()
        }
        sample = next(iter(members.values())).declaration.settings.max_failure_samples
        schemas = {name: members[name].schema_rules for name in results}
        judged = [
            judge(
                members[name].declaration,
                results[name],
                checks[name],
                verdict,
                members[name].surroundings,
            )
            for name, verdict in judge_members(rules, schemas, verdicts, sample).items()
        ]
        errors = [error for error in map(find_error, judged) if error]
        for each_judged in judged:
            yield from refuse(each_judged) if errors else accept(each_judged)
        yield from _skip_all(skipped)
        if errors:
            raise errors[0]


def _skip_all(members: Iterable[Member]) -> Iterator[AssetYield]:
    for member in members:
        yield from report_skip(member.declaration, member.surroundings)


def _unpack(
    name: str, rules: CollectionRules, members: Mapping[str, Member], returned: object
) -> dict[str, Returned]:
    """The frames by member, without the optional ones that are not there; none for a skip."""
    if returned is None:
        return {}
    if isinstance(returned, rules.collection):
        returned = {member: getattr(returned, member) for member in rules.schemas}
    problem = ""
    if not isinstance(returned, Mapping):
        problem = f"a `{type_name(returned)}`"
    elif unknown := [member for member in returned if member not in rules.schemas]:
        problem = f"`{unknown[0]}`, which is no member of `{rules.name}`"
    else:
        required = [name for name in rules.schemas if name in rules.collection.required_members()]
        if lacking := [member for member in required if returned.get(member) is None]:
            problem = f"nothing for member `{lacking[0]}`"
    if problem or not isinstance(returned, Mapping):
        allowed = f"a frame for each member, or an instance, of `{rules.name}`"
        raise ReturnValueError(name, problem, "", allowed)
    unpacked = {
        member: unpack(members[member].declaration.asset_name, returned.get(member))
        for member in rules.schemas
    }
    return {member: result for member, result in unpacked.items() if result is not None}
